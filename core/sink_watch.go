package core

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"
)

// watchBuffer is how many signals a Watch keeps for its consumer. At 10,000 raises a
// second, the consumer may pause for 25 ms.
const watchBuffer = 256

// Watch yields the signals that match pattern as they are raised, from the start of the
// loop until ctx ends or the loop is left. It never makes a raiser wait. It keeps at most
// 256 signals for the loop, and drops the oldest beyond that. The second value is the
// number of signals dropped directly before this one. Like [Sink.Subscribe], a Watch with
// a pattern such as "operation.*" makes coordinators raise SignalStarted and SignalStopped.
//
//ephemeral:pattern {pattern}
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
	queue  queue[Signal]
	missed int
	news   chanWaker // has room for one notice, which says "look again"
}

func (w *watch) add(s Signal) {
	w.mu.Lock()
	if w.queue.n == watchBuffer {
		w.queue.drop()
		w.missed++
	}
	*w.queue.push() = s
	w.mu.Unlock()
	w.news.wake()
}

func (w *watch) take() (s Signal, missed int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue.n == 0 {
		return Signal{}, 0, false
	}
	missed, w.missed = w.missed, 0
	s = *w.queue.get(0)
	w.queue.drop()
	return s, missed, true
}

// WaitFor returns the newest signal that matches pattern. If none is present, it waits
// until one is raised. If ctx ends first, WaitFor returns the cause of ctx.
//
//ephemeral:pattern {pattern}
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

// WaitGone waits until no signal that matches pattern is present. At its start it looks at
// each signal. If a new signal is raised right after the last one has gone, WaitGone may
// return or may go on waiting. If ctx ends first, WaitGone returns the cause of ctx.
//
//ephemeral:pattern {pattern}
func (s *Sink) WaitGone(ctx context.Context, pattern string) error {
	needContext(ctx, "WaitGone")
	gone := make(chanWaker, 1)
	s.prepareZero()
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

// chanWaker wakes the goroutine that receives from it.
type chanWaker chan struct{}

func (c chanWaker) wake() {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Follow calls fn once for every signal that matches pattern. Before Follow returns, it
// calls fn for the signals that are present, held ones included, oldest first. After
// that it calls fn for new signals, like [Sink.Subscribe]. Signals that are raised while
// Follow runs come after those present. It panics if fn is nil.
//
//ephemeral:pattern {pattern}
func (s *Sink) Follow(pattern string, fn func(Signal)) (cancel func()) {
	need(fn != nil, "Follow needs a function")
	p := compile(pattern)
	var (
		present []Signal
		mu      sync.Mutex
		behind  = true
		queue   []Signal // signals that come while fn is called for the present ones
	)
	hook := newHook(p, func(signal Signal) {
		mu.Lock()
		wait := behind
		if wait {
			queue = append(queue, signal)
		}
		mu.Unlock()
		if !wait {
			fn(signal)
		}
	})
	s.lockFresh()
	s.each(p, s.ring.stored, func(seq uint64, f *fact) bool {
		present = append(present, f.signal(seq, s.names.clock))
		return true
	})
	cancel = hook.join(&s.mu, watching[*subscription]{&s.names.routes, &s.names.subs})
	s.unlock()
	slices.SortFunc(present, asRaised)
	once := []*subscription{newHook(p, fn)}
	for i := range present {
		deliver(once, false, &present[i], &s.panics)
	}
	mu.Lock()
	behind = false
	mu.Unlock()
	for i := range queue { // nothing is added to queue any more
		deliver(once, false, &queue[i], &s.panics)
	}
	return cancel
}
