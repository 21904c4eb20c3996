package core

import "context"

// flush waits for some operations, or until there are none.
type flush struct {
	includes func(*Operation) bool // which ones, of those that have not ended; nil: all, until there are none
	left     int                   // 0: done
	done     chan struct{}
}

// ended notes that o has ended, and reports whether the wait is over. o.engine.mu is held.
func (f *flush) ended(o *Operation) (over bool) {
	switch {
	case f.includes == nil:
		f.left = o.engine.unfinished()
	case f.includes(o):
		f.left--
	}
	return f.left == 0
}

// startFlush begins to wait for what has been accepted so far; nil if that is
// finished. mu is held.
func (e *engine) startFlush() *flush {
	left := e.unfinished() // collects
	newest := e.index.newest
	return e.expect(left, func(o *Operation) bool { return o.id <= newest })
}

// expect begins to wait for so many operations; nil if there are none. mu is held.
func (e *engine) expect(left int, includes func(*Operation) bool) *flush {
	if left == 0 {
		return nil
	}
	f := &flush{includes, left, make(chan struct{})}
	e.flushes = append(e.flushes, f)
	return f
}

// waitForAll waits until what start has begun with mu held is done.
func (e *engine) waitForAll(ctx context.Context, start func() *flush) error {
	if e.isOwn(ctx) {
		return ErrWouldDeadlock
	}
	e.mu.Lock()
	f := start()
	e.mu.Unlock()
	if f == nil {
		return nil
	}
	err := (awaited{engine: e, flush: f}).wait(ctx, f.done)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.left == 0 {
		return nil
	}
	e.flushes = without(e.flushes, f)
	return err
}

// awaited is what is waited for in an engine, namely
type awaited struct {
	engine *engine
	on     *Operation // the end of this one,
	flush  *flush     // or of these,
	group  *group     // or of these,
	room   *Operation // or room in a queue for this one
}

// wait waits until done is closed. When ctx ends first it returns its cause. If ctx
// is an operation's, Explain shows the wait.
func (a awaited) wait(ctx context.Context, done <-chan struct{}) error {
	if by := OperationFrom(ctx); by != nil {
		w := &bodyWait{by: by, on: a}
		w.start()
		defer w.end()
	} else if ctx.Done() == nil { // a select would cost more
		<-done
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
