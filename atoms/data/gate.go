package data

import (
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// A gate counts the calls of a store and closes the engine when none is left. A call is
// either inside the engine or in a function of its caller, such as the body of a loop.
// Close waits for calls of the first kind only: it may be called in such a function.
type gate struct {
	end   func() error  // closes the engine
	quiet chan struct{} // closed when all calls that are left are in functions of their callers
	done  chan struct{} // closed when the engine is closed

	mu     sync.Mutex
	inside int // calls inside the engine
	closed bool
	stats  Stats
	err    error // of end; set before done is closed
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

// leave ends a call.
func (g *gate) leave(ok bool) {
	g.mu.Lock()
	if ok {
		g.stats.Succeeded++
	} else {
		g.stats.Failed++
	}
	g.stats.Running--
	g.inside--
	g.unlock()
}

// user calls a function of the caller of a call. The call may use the engine again unless
// user returns an error.
func (g *gate) user(fn func()) error {
	g.mu.Lock()
	g.inside--
	g.unlock()
	defer func() {
		g.mu.Lock()
		g.inside++
		g.mu.Unlock()
	}()
	fn()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return core.ErrClosed
	}
	return nil
}

// close refuses further calls and waits until no call is inside the engine. It returns the
// error of closing the engine, if that is closed.
func (g *gate) close() error {
	g.mu.Lock()
	if first := !g.closed; first {
		g.closed = true
		g.unlock()
	} else {
		g.mu.Unlock()
	}
	select {
	case <-g.done:
		return g.err
	case <-g.quiet:
		return nil
	}
}

// unlock unlocks mu, and then does what follows from there being one call less inside.
func (g *gate) unlock() {
	last := g.closed && g.stats.Running == 0
	if g.closed && g.inside == 0 && !last {
		select {
		case <-g.quiet:
		default:
			close(g.quiet)
		}
	}
	g.mu.Unlock()
	if last {
		g.err = g.end()
		close(g.done)
	}
}

func (g *gate) conflict() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats.Conflicts++
}

func (g *gate) counters() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}
