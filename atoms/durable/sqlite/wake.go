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
// have made items free. It has a goroutine until cancel is called. Cancel waits for the
// goroutine, so fn must not call cancel.
func (s *Store) OnWake(queue string, fn func()) (cancel func()) {
	ctx, stop := context.WithCancel(context.Background())
	w, watch := &waker{queue, fn}, sync.WaitGroup{}
	s.wakers.Store(w, nil)
	if s.opts.WakeEvery > 0 {
		watch.Go(func() { s.watch(ctx, w) })
	}
	return func() {
		s.wakers.Delete(w)
		stop()
		watch.Wait()
	}
}

// watch looks at the counter of the queue.
func (s *Store) watch(ctx context.Context, w *waker) {
	for seen := -1; ctx.Err() == nil; {
		changes, err := look(ctx, s, w.queue, func(t *moment) (changes int) {
			t.get(list{&changes}, "select changes from durable_queue where queue = ?", w.queue)
			return changes
		})
		if err == nil && changes != seen {
			seen = changes
			w.fn()
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.opts.WakeEvery):
		}
	}
}
