package sqlite

import (
	"context"
	"sync"
	"time"
)

// waker is a call of OnWake.
type waker struct {
	queue string
	fn    func()
	seen  int // changes of the queue; only watch uses it
}

// Wake wakes up the queues of this process at once. Other processes notice a commit within
// their Options.WakeEvery.
func (s *Store) Wake(queue string) {
	for w := range s.wakers.Range {
		if w := w.(*waker); w.queue == queue {
			w.fn()
		}
	}
}

// OnWake calls fn after each Wake of the queue, and after changes by other processes that may
// have made items free. The store has a goroutine until all queues have called cancel. The last
// cancel waits for the goroutine, so fn must not call cancel.
func (s *Store) OnWake(queue string, fn func()) (cancel func()) {
	w := &waker{queue, fn, -1}
	s.wakers.Store(w, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running++; s.running == 1 && s.opts.WakeEvery > 0 {
		ctx, stop := context.WithCancel(context.Background())
		var watch sync.WaitGroup
		watch.Go(func() { s.watch(ctx) })
		s.unwatch = func() { stop(); watch.Wait() }
	}
	return sync.OnceFunc(func() {
		s.wakers.Delete(w)
		s.mu.Lock()
		s.running--
		end := s.unwatch
		if s.running > 0 || end == nil {
			end = func() {}
		} else {
			s.unwatch = nil
		}
		s.mu.Unlock()
		end()
	})
}

// watch looks at the counters of all queues.
func (s *Store) watch(ctx context.Context) {
	type counter struct {
		queue   string
		changes int
	}
	for ctx.Err() == nil {
		all, err := look(ctx, s, "", func(t *moment) []counter {
			return rows(t, func(c *counter) list { return list{&c.queue, &c.changes} }, "select queue, changes from durable_queue")
		})
		of := map[string]int{}
		for _, c := range all {
			of[c.queue] = c.changes
		}
		for w := range s.wakers.Range {
			if w := w.(*waker); err == nil && w.seen != of[w.queue] {
				w.seen = of[w.queue]
				w.fn()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.opts.WakeEvery):
		}
	}
}
