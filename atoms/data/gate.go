package data

import (
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// A gate counts calls, and after close calls end when none is left.
type gate struct {
	end func() error

	mu     sync.Mutex
	closed bool
	stats  Stats
}

func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return core.ErrClosed
	}
	g.stats.Calls++
	g.stats.Running++
	return nil
}

func (g *gate) leave(ok bool) {
	g.mu.Lock()
	g.stats.Running--
	if ok {
		g.stats.Succeeded++
	} else {
		g.stats.Failed++
	}
	last := g.closed && g.stats.Running == 0
	g.mu.Unlock()
	if last {
		g.end()
	}
}

// close refuses further calls. It returns the error of end if it has called that.
func (g *gate) close() error {
	g.mu.Lock()
	last := !g.closed && g.stats.Running == 0
	g.closed = true
	g.mu.Unlock()
	if last {
		return g.end()
	}
	return nil
}

func (g *gate) counters() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}
