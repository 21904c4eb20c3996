package statuspage

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A line has so many samples. The sampler goes on for so long after the last viewer.
const samples, remembers = 120, 2 * time.Minute

// sampler looks at all coordinators once a second. It starts with the first viewer, and ends
// two minutes after the last one.
type sampler struct {
	mu      sync.Mutex
	lines   map[*coordinator]line // nil: the sampler does not run
	streams int
	seen    time.Time
}

// line is what the sampler knows about a coordinator. It is a value: each step makes a new
// line.
type line struct {
	at      time.Time
	ended   uint64
	rates   []int
	waiting core.OperationID // no earlier item waits
	oldest  time.Time
}

// look records that a client looks. A stream calls it with 1 at its start and with -1 at
// its end. A single request calls it with 0.
func (s *sampler) look(p *Page, streams int) {
	s.mu.Lock()
	s.seen = time.Now()
	s.streams += streams
	start := s.lines == nil && p.ctx.Err() == nil
	if start {
		s.lines = map[*coordinator]line{}
	}
	s.mu.Unlock()
	if start {
		s.sample(p)
		go s.run(p)
	}
}

func (s *sampler) run(p *Page) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !s.isOver(p) {
		select {
		case <-p.ctx.Done():
		case <-tick.C:
			s.sample(p)
		}
	}
}

// isOver reports whether no client has looked for two minutes. If so, it forgets the lines.
func (s *sampler) isOver(p *Page) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ctx.Err() == nil && (s.streams > 0 || time.Since(s.seen) < remembers) {
		return false
	}
	s.lines = nil
	return true
}

// sample takes a sample of each coordinator. One goroutine at a time does that.
func (s *sampler) sample(p *Page) {
	lines := map[*coordinator]line{}
	for _, c := range p.coordinators {
		l := s.lines[c]    // without the lock, because nobody else writes
		p.guarded(func() { // the row shows the text of a panic
			stats := c.is.Stats()
			ended, now := stats.Succeeded+stats.Failed+stats.Cancelled, time.Now()
			if !l.at.IsZero() && ended >= l.ended { // otherwise it is another coordinator now
				rate := float64(ended-l.ended) / now.Sub(l.at).Seconds()
				l.rates = append(slices.Clone(l.rates[max(0, len(l.rates)-samples+1):]), int(math.Round(rate)))
			}
			l.at, l.ended = now, ended
			if l.oldest = (time.Time{}); stats.Pending > 0 {
				after := l.waiting
				l.waiting = 0 // if nothing is found, look at all the next time
				for o := range c.is.Operations(core.OperationQuery{Status: core.StatusPending, After: after, Limit: 1}) {
					l.oldest, l.waiting = o.Enqueued, o.ID-1
				}
			}
		})
		lines[c] = l
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = lines
}

// shown returns the throughput and the time of the item that waits longest.
func (s *sampler) shown(c *coordinator) ([]int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int{}, s.lines[c].rates...), stamp(s.lines[c].oldest)
}
