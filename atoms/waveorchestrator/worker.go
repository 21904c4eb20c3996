package waveorchestrator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Worker is a function with a name and a place in the order of things.
type Worker[In, Out any] struct {
	// Name tells workers apart, in results and in signals, of whose names it is
	// a part: not empty, at most 128 bytes, without commas, colons, "*", "?",
	// control characters and blanks around it.
	Name string
	// Wave says when it runs: after all workers of lower waves. Waves need not
	// start at 0, may be negative, and may leave gaps.
	Wave int
	// Priority says which workers of a wave start first: the lower ones; of
	// equal ones, by name. It matters where not all may run at once.
	Priority int
	// Do is the work. Its context has the values of that of Execute, knows the
	// operation that the run is ([core.OperationFrom]), and ends when the
	// worker's time is over or nothing more is wanted of it, with the cause set:
	// [ErrWorkerTimeout], [ErrTimeout], [ErrEarlyExit], what ended the context of
	// Execute, the cause of Cancel, or [core.ErrClosed]. Do should return then; see
	// [Options.Grace].
	//
	// All workers get the same input. What it points to is shared by those of a
	// wave, and by abandoned ones; what earlier waves have written there, later
	// ones may read.
	Do core.ResultWork[In, Out]
}

// WorkerStatus is how a worker stands, across executions.
type WorkerStatus struct {
	Name      string        `json:"name"`
	Wave      int           `json:"wave"`
	Priority  int           `json:"priority"`
	Breaker   BreakerStatus `json:"breaker"`
	Failures  int           `json:"failures"`       // in a row
	Retry     time.Time     `json:"retry,omitzero"` // while Breaker is BreakerOpen: when it may be probed
	Abandoned int           `json:"abandoned"`      // runs that were abandoned and still go on
}

const maxName = 128

func (w *Worker[In, Out]) validate(i int) error {
	switch {
	case w.Name == "":
		return fmt.Errorf("waveorchestrator: worker %d needs a name", i)
	case len(w.Name) > maxName:
		return fmt.Errorf("waveorchestrator: the name of worker %d has %d bytes, and may have %d", i, len(w.Name), maxName)
	case strings.ContainsAny(w.Name, ",:*?") || strings.ContainsFunc(w.Name, unicode.IsControl) || strings.TrimSpace(w.Name) != w.Name:
		return fmt.Errorf("waveorchestrator: the name %q of worker %d must be without commas, colons, *, ?, control characters and blanks around it", w.Name, i)
	case w.Do == nil:
		return fmt.Errorf("waveorchestrator: worker %q needs a function Do, not nil", w.Name)
	}
	return nil
}

// wave is what is run at once: a part of the workers, in their order.
type wave struct {
	number    int
	key       string // number
	from, end int    // workers
	limit     int
	started   string // name of the signal if all of its workers run
}

func hasWave(waves []wave, number int) bool {
	return slices.ContainsFunc(waves, func(w wave) bool { return w.number == number })
}

// plan checks workers and puts them in order.
func plan[In, Out any](list []Worker[In, Out]) ([]*member[In, Out], []wave, error) {
	if len(list) == 0 {
		return nil, nil, errors.New("waveorchestrator: there must be at least one worker")
	}
	taken := make(map[string]bool, len(list))
	members := make([]*member[In, Out], len(list))
	for i := range list {
		w := list[i]
		if err := w.validate(i); err != nil {
			return nil, nil, err
		}
		if taken[w.Name] {
			return nil, nil, fmt.Errorf("waveorchestrator: there are two workers %q, but names tell them apart", w.Name)
		}
		taken[w.Name] = true
		members[i] = &member[In, Out]{Worker: w, signals: namesOf(w.Name)}
	}
	slices.SortFunc(members, func(a, b *member[In, Out]) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name))
	})
	var waves []wave
	for i, m := range members {
		if len(waves) == 0 || waves[len(waves)-1].number != m.Wave {
			waves = append(waves, wave{number: m.Wave, key: strconv.Itoa(m.Wave), from: i})
		}
		waves[len(waves)-1].end = i + 1
	}
	for i := range waves {
		w := &waves[i]
		w.started = waveStarted(w.key, w.end-w.from)
	}
	return members, waves, nil
}

// member is a worker and what is remembered of it across executions.
type member[In, Out any] struct {
	Worker[In, Out]
	signals      names
	maxAbandoned int

	mu        sync.Mutex
	breaker   breaker
	abandoned int    // runs that still go on
	release   func() // of the fact that the breaker has opened; nil: it has not
}

// admit returns why the worker must not run now, or nil and the breaker's ticket.
func (m *member[In, Out]) admit(now time.Duration) (ticket uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.abandoned >= m.maxAbandoned {
		return 0, ErrStuck
	}
	ticket, ok := m.breaker.admit(now)
	if !ok {
		return 0, ErrBreakerOpen
	}
	return ticket, nil
}

func (m *member[In, Out]) success(ticket uint64) (closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.breaker.success(ticket)
}

func (m *member[In, Out]) failure(ticket uint64, now time.Duration) (failures int, until time.Duration, opened bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	opened = m.breaker.failure(ticket, now)
	return m.breaker.failures, m.breaker.until, opened
}

func (m *member[In, Out]) giveBack(ticket uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.breaker.release(ticket)
}

func (m *member[In, Out]) releaseOpened() {
	m.mu.Lock()
	release := m.release
	m.release = nil
	m.mu.Unlock()
	if release != nil {
		release()
	}
}

func (m *member[In, Out]) status(base time.Time) WorkerStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := WorkerStatus{
		Name:      m.Name,
		Wave:      m.Wave,
		Priority:  m.Priority,
		Breaker:   m.breaker.at(time.Since(base)),
		Failures:  m.breaker.failures,
		Abandoned: m.abandoned,
	}
	if s.Breaker == BreakerOpen {
		s.Retry = base.Add(m.breaker.until)
	}
	return s
}
