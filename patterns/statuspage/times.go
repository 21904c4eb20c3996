package statuspage

import (
	"math/bits"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/durations"
)

// timer is a coordinator that counts how long its operations wait and run.
type timer interface {
	Times(within time.Duration) []core.Times
}

type timeFrame struct {
	Minutes int       `json:"minutes"`
	Times   []timeRow `json:"times"` // of coordinators, each before its lanes and classes
}

type timeRow struct {
	Coordinator string    `json:"coordinator"`
	Lane        string    `json:"lane,omitempty"`
	Class       string    `json:"class,omitempty"`
	Error       string    `json:"error,omitempty"` // error of a panic; then the other fields are missing
	Waiting     *spreadOf `json:"waiting,omitempty"`
	Running     *spreadOf `json:"running,omitempty"`
}

// spreadOf is a histogram in JSON: times in milliseconds.
type spreadOf struct {
	Count  uint64       `json:"count"`
	P50    float64      `json:"p50Ms"`
	P95    float64      `json:"p95Ms"`
	P99    float64      `json:"p99Ms"`
	Ranges [][2]float64 `json:"ranges"` // the end of a range, and how many; each range is twice as long as the one before
}

// begin makes the coordinators count from now on.
func (p *Page) begin() {
	for _, c := range p.coordinators {
		if t, ok := c.is.(timer); ok {
			guarded(func() error { t.Times(0); return nil }) // the view shows the text of a panic
		}
	}
}

// times shows how long operations waited and ran in the last minutes.
func (p *Page) times(minutes int) (any, error) {
	shown := timeFrame{minutes, []timeRow{}}
	for _, c := range p.coordinators {
		t, ok := c.is.(timer)
		if !ok {
			continue
		}
		var list []core.Times
		if err := guarded(func() error { list = t.Times(time.Duration(minutes) * time.Minute); return nil }); err != nil {
			shown.Times = append(shown.Times, timeRow{Coordinator: c.id, Error: p.redacted(err.Error())})
		}
		for i := range list {
			of := &list[i]
			shown.Times = append(shown.Times, timeRow{c.id, cut(of.Lane), cut(of.Class), "", spread(&of.Waiting), spread(&of.Running)})
		}
	}
	return shown, nil
}

func spread(h *durations.Histogram) *spreadOf {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	s := &spreadOf{h.Count(), ms(h.Quantile(0.5)), ms(h.Quantile(0.95)), ms(h.Quantile(0.99)), [][2]float64{}}
	last := 0
	for end, n := range h.All() {
		power := bits.Len64(uint64(end - 1))
		for ; last > 0 && last < power; last++ {
			s.Ranges = append(s.Ranges, [2]float64{ms(1 << (last + 1))})
		}
		if last == 0 {
			s.Ranges, last = append(s.Ranges, [2]float64{ms(1 << power)}), power
		}
		s.Ranges[len(s.Ranges)-1][1] += float64(n)
	}
	return s
}
