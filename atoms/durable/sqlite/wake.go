package sqlite

import (
	"context"
	"slices"
	"time"
)

// A watch looks at the table of queues, in a goroutine of its own.
type watch struct {
	stop  context.CancelFunc
	ended chan struct{}
}

// Wake wakes up the queues of this process at once. Other processes see by themselves what
// was committed, within Options.WakeEvery.
func (s *Store) Wake(queue string) {
	s.mu.Lock()
	fns := slices.Clone(s.wakers[queue])
	s.mu.Unlock()
	for _, fn := range fns {
		(*fn)()
	}
}

// OnWake calls fn after each Wake of the queue, and after changes of other processes that may
// have made items free, until cancel is called. While there is at least one fn, the store has
// a goroutine. The last cancel ends it and waits for it, so fn must not call cancel.
func (s *Store) OnWake(queue string, fn func()) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakers[queue] = append(s.wakers[queue], &fn)
	if s.watch == nil && s.opts.WakeEvery > 0 {
		ctx, stop := context.WithCancel(context.Background())
		w := &watch{stop, make(chan struct{})}
		s.watch = w
		go func() {
			defer close(w.ended)
			s.watchQueues(ctx)
		}()
	}
	return func() {
		if w := s.forget(queue, &fn); w != nil {
			w.stop()
			<-w.ended
		}
	}
}

// forget removes a function. If it was the last one it returns the watch.
func (s *Store) forget(queue string, fn *func()) (last *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wakers[queue] = slices.DeleteFunc(s.wakers[queue], func(f *func()) bool { return f == fn }); len(s.wakers[queue]) == 0 {
		delete(s.wakers, queue)
	}
	if len(s.wakers) == 0 {
		last, s.watch = s.watch, nil
	}
	return last
}

// watchQueues wakes up the queues that have changed since it looked last.
func (s *Store) watchQueues(ctx context.Context) {
	tick := time.NewTicker(s.opts.WakeEvery)
	defer tick.Stop()
	seen := map[string]int64{}
	for ctx.Err() == nil {
		for _, queue := range s.waiting() {
			changes, known := seen[queue]
			now := changes
			if err := s.look(ctx, queue, func(t *tx) {
				t.get(list{&now}, "select changes from durable_queue where queue = ?", queue)
			}); err == nil && (!known || now != changes) {
				seen[queue] = now
				s.Wake(queue)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// waiting returns the queues that have a function.
func (s *Store) waiting() (queues []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for queue := range s.wakers {
		queues = append(queues, queue)
	}
	return queues
}
