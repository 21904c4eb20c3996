package sqlite

import (
	"context"
	"time"
)

// waker is a call of OnWake.
type waker struct {
	queue string
	wake  chan struct{} // has one: call the function
}

// Wake wakes up the queues of this process at once. Other processes see what was committed
// by themselves, within Options.WakeEvery.
func (s *Store) Wake(queue string) {
	for w := range s.wakers.Range {
		if w := w.(*waker); w.queue == queue {
			select {
			case w.wake <- struct{}{}:
			default: // it will be called
			}
		}
	}
}

// OnWake calls fn after each Wake of the queue, and after changes of other processes that may
// have made items free, until cancel is called. Until then it has a goroutine, which calls fn.
// Cancel waits for it, so fn must not call cancel.
func (s *Store) OnWake(queue string, fn func()) (cancel func()) {
	ctx, stop := context.WithCancel(context.Background())
	w, ended := &waker{queue, make(chan struct{}, 1)}, make(chan struct{})
	s.wakers.Store(w, nil)
	go func() {
		defer close(ended)
		s.watch(ctx, w, fn)
	}()
	return func() {
		s.wakers.Delete(w)
		stop()
		<-ended
	}
}

func (s *Store) watch(ctx context.Context, w *waker, fn func()) {
	var tick <-chan time.Time
	if s.opts.WakeEvery > 0 {
		ticker := time.NewTicker(s.opts.WakeEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	for seen := -1; ; {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			fn()
		case <-tick:
			changes, err := look(ctx, s, w.queue, func(t *moment) (changes int) {
				t.get(list{&changes}, "select changes from durable_queue where queue = ?", w.queue)
				return changes
			})
			if err == nil && changes != seen {
				seen = changes
				fn()
			}
		}
	}
}
