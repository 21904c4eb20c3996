package statuspage

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	samples   = 120             // that a line has
	remembers = 2 * time.Minute // how long the sampler goes on after the last viewer
)

// sampler looks at all coordinators once a second, from the first viewer on until two
// minutes after the last.
type sampler struct {
	mu      sync.Mutex // guards the lines, too
	running bool
	streams int
	seen    time.Time
}

// line is what the sampler knows of a coordinator.
type line struct {
	at      time.Time
	ended   uint64
	rates   []int
	waiting core.OperationID // no item waits that came before
	oldest  time.Time
}

// look notes that somebody looks.
func (s *sampler) look(p *Page) {
	s.mu.Lock()
	s.seen = time.Now()
	start := !s.running && p.ctx.Err() == nil
	s.running = s.running || start
	s.mu.Unlock()
	if start {
		s.sample(p)
		go s.run(p)
	}
}

// attend is look for as long as a stream lasts: n is 1 at its start and -1 at its end.
func (s *sampler) attend(p *Page, n int) {
	s.mu.Lock()
	s.streams += n
	s.mu.Unlock()
	s.look(p)
}

func (s *sampler) run(p *Page) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
		case <-tick.C:
			s.sample(p)
		}
		if s.isOver(p) {
			return
		}
	}
}

// isOver reports whether nobody has looked for long, and forgets the lines then.
func (s *sampler) isOver(p *Page) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ctx.Err() == nil && (s.streams > 0 || time.Since(s.seen) < remembers) {
		return false
	}
	for _, c := range p.coordinators {
		c.line = line{}
	}
	s.running = false
	return true
}

func (s *sampler) sample(p *Page) {
	for _, c := range p.coordinators {
		stats, now := c.Stats(), time.Now()
		s.mu.Lock()
		l := c.line
		s.mu.Unlock()
		l.step(stats.Succeeded+stats.Failed+stats.Cancelled, now)
		l.oldest = time.Time{}
		if stats.Pending > 0 {
			for o := range c.Operations(core.OperationQuery{Status: core.StatusPending, After: l.waiting, Limit: 1}) {
				l.oldest, l.waiting = o.Enqueued, o.ID-1
			}
		}
		s.mu.Lock()
		c.line = l
		s.mu.Unlock()
	}
}

// step adds a sample to the line.
func (l *line) step(ended uint64, now time.Time) {
	if !l.at.IsZero() {
		rate := float64(ended-l.ended) / now.Sub(l.at).Seconds()
		l.rates = append(slices.Clone(l.rates[max(0, len(l.rates)-samples+1):]), int(math.Round(rate)))
	}
	l.at, l.ended = now, ended
}

// shown returns the throughput and the time of the item that waits longest.
func (s *sampler) shown(c *coordinator) ([]int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int{}, c.line.rates...), stamp(c.line.oldest)
}
