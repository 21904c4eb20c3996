package data

import (
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// A gate counts the calls of a store, and closes the engine when none is left. A call is
// inside the engine, or in a function of its caller, such as the body of a loop. Close waits
// for calls inside only, so such a function may call it.
type gate struct {
	end func() error // closes the engine

	mu      sync.Mutex
	changed sync.Cond // of mu
	inside  int       // calls inside the engine
	closed  bool      // no call may begin, nor come back from a function of its caller
	ending  bool      // end has been called
	ended   bool      // and has returned err
	err     error
	stats   Stats
}

func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return core.ErrClosed
	}
	g.stats.Calls++
	g.stats.Running++
	g.inside++
	return nil
}

func (g *gate) leave(err error) {
	g.step(func() {
		g.stats.Running--
		g.inside--
		if err == nil {
			g.stats.Succeeded++
		} else {
			g.stats.Failed++
		}
	})
}

// user calls a function of the caller. The engine may be used again unless it returns an
// error: that of the function, or [core.ErrClosed].
func (g *gate) user(fn func() error) (err error) {
	g.step(func() { g.inside-- })
	defer func() {
		if closed := g.step(func() { g.inside++ }); closed && err == nil {
			err = core.ErrClosed
		}
	}()
	return fn()
}

// close waits until no call is inside the engine, and returns the error of closing it if it
// is closed then.
func (g *gate) close() error {
	g.step(func() { g.closed = true })
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.inside > 0 || g.ending && !g.ended {
		g.changed.Wait()
	}
	return g.err
}

// step makes a change, closes the engine if nothing can use it any more, and reports whether
// the gate is closed.
func (g *gate) step(change func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	if g.closed && g.stats.Running == 0 && !g.ending {
		g.ending = true
		g.mu.Unlock()
		err := g.end()
		g.mu.Lock()
		g.ended, g.err = true, err
	}
	g.changed.Broadcast()
	return g.closed
}

func (g *gate) counters() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}
