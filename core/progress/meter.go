package progress

import (
	"math"
	"time"
)

// meter decides which steps are reported.
type meter struct {
	Options
	report Report
	steps  int // steps since a report was due
	last   time.Time
}

func (m *meter) add(n int64, now time.Time) (due bool) {
	return m.set(m.report.Current+min(n, math.MaxInt64-m.report.Current), now)
}

func (m *meter) set(current int64, now time.Time) (due bool) {
	if m.report.Done || current <= m.report.Current {
		return false
	}
	m.report.Current = current
	if total := m.report.Total; total > 0 && current >= total {
		m.report.Current = total
		return m.end()
	}
	m.steps++
	if m.Every < 0 || m.steps < m.Every {
		return false
	}
	m.steps = 0
	if now.Sub(m.last) < m.MinInterval {
		return false
	}
	m.last = now
	return true
}

func (m *meter) end() (due bool) {
	due = !m.report.Done
	m.report.Done = true
	return due
}
