package core

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"
)

// watchBuffer is how many signals a Watch keeps for its consumer.
const watchBuffer = 256

// Watch walks the signals matching pattern as they are raised, from the start of
// the loop until ctx ends or the loop is left. It never makes a raiser wait: a
// consumer that falls more than 256 signals behind misses the oldest, and the
// second value says how many went missing just before this one. It is a handler,
// with what [Sink.Subscribe] says of patterns.
func (s *Sink) Watch(ctx context.Context, pattern string) iter.Seq2[Signal, int] {
	needContext(ctx, "Watch")
	return func(yield func(Signal, int) bool) {
		w := watch{news: make(chanWaker, 1)}
		defer s.Subscribe(pattern, w.add)()
		for {
			signal, missed, ok := w.take()
			if ok {
				if ctx.Err() != nil || !yield(signal, missed) {
					return
				}
				continue
			}
			select {
			case <-w.news:
			case <-ctx.Done():
				return
			}
		}
	}
}

// watch is the buffer between raisers and a consumer that may be slower.
type watch struct {
	mu     sync.Mutex
	queue  []Signal
	missed int
	news   chanWaker // has room for one: "look again"
}

func (w *watch) add(s Signal) {
	w.mu.Lock()
	if len(w.queue) == watchBuffer {
		w.queue = append(w.queue[:0], w.queue[1:]...)
		w.missed++
	}
	w.queue = append(w.queue, s)
	w.mu.Unlock()
	w.news.wake()
}

func (w *watch) take() (s Signal, missed int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return Signal{}, 0, false
	}
	s, w.queue = w.queue[0], w.queue[1:]
	missed, w.missed = w.missed, 0
	return s, missed, true
}

// WaitFor returns the newest signal matching pattern, at once if one is present,
// else as soon as one is raised. When ctx ends first it returns its cause.
func (s *Sink) WaitFor(ctx context.Context, pattern string) (Signal, error) {
	needContext(ctx, "WaitFor")
	w := watch{news: make(chanWaker, 1)}
	defer s.Subscribe(pattern, w.add)()
	var newest Signal
	if s.Has(pattern) {
		for signal := range s.Sense(Query{Pattern: orNothing(pattern)}) {
			newest = signal
		}
	}
	if newest.Seq != 0 {
		return newest, nil
	}
	select {
	case <-w.news:
		signal, _, _ := w.take()
		return signal, nil
	case <-ctx.Done():
		return Signal{}, context.Cause(ctx)
	}
}

func needContext(ctx context.Context, caller string) {
	need(ctx != nil, caller+" needs a context, not nil: context.Background() never ends")
}

// need panics, with what a caller needs, unless it has that.
func need(has bool, what string) {
	if !has {
		panic("core: " + what)
	}
}

// orNothing keeps an empty pattern, which matches nothing, from being an empty
// Query.Pattern, which selects everything.
func orNothing(pattern string) string {
	return cmp.Or(pattern, ",")
}

// WaitGone returns when no signal matching pattern is present: at once if none
// is, else when the last was retracted, evicted or released, or has expired. One
// that is raised right after that may be seen or not. When ctx ends first it
// returns its cause.
func (s *Sink) WaitGone(ctx context.Context, pattern string) error {
	needContext(ctx, "WaitGone")
	gone := make(chanWaker, 1)
	s.mu.Lock()
	c := s.names.addCounter(compile(pattern), gone)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.names.removeCounter(c)
		s.mu.Unlock()
	}()
	for {
		s.lockFresh()
		n := c.n
		ends := s.nextEnd(never)
		s.unlock()
		if n == 0 {
			return nil
		}
		alarm := time.NewTimer(time.Duration(ends - s.names.clock.now()))
		select {
		case <-gone:
		case <-alarm.C:
		case <-ctx.Done():
		}
		alarm.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// chanWaker wakes whoever receives from it.
type chanWaker chan struct{}

func (c chanWaker) wake() {
	select {
	case c <- struct{}{}:
	default:
	}
}
