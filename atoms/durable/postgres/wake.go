package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// noticeEvery is the shortest time between two notifications of a queue: their commits wait for each
// other. They do not wait for the disk, because a notification that is lost does no harm.
const noticeEvery = 10 * time.Millisecond

// notice is the state of the notifications of a queue. It exists while a notification is being
// sent or was sent a moment ago.
type notice struct{ busy, again bool }

// channel is the channel of notifications of the schema. The payload is the queue.
func (s *Store) channel() string { return "durable_" + s.opts.Schema }

// Wake notifies all processes that there is work in the queue, in the background, at most
// every 10 ms.
func (s *Store) Wake(queue string) {
	if s.opts.PollOnly {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.notices[queue]; n.busy {
		s.notices[queue] = notice{true, true}
		return
	}
	s.notices[queue] = notice{busy: true}
	go s.notify(queue)
}

func (s *Store) notify(queue string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	if conn, err := s.acquire(ctx, s.forBeats()); err == nil { // if it fails, nodes poll
		conn.Exec(ctx, "select pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify($1, $2)", s.channel(), queue)
		conn.Release()
	}
	cancel()
	time.AfterFunc(noticeEvery, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.notices[queue].again {
			s.notices[queue] = notice{busy: true}
			go s.notify(queue)
		} else {
			delete(s.notices, queue)
		}
	})
}

// OnWake calls fn for each notification of the queue until cancel is called. While at least one
// function is registered, the store listens with one connection of its own, not of the pool.
func (s *Store) OnWake(queue string, fn func()) (cancel func()) {
	if s.opts.PollOnly {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakers[queue] = append(s.wakers[queue], &fn)
	if s.unlisten == nil {
		ctx, stop := context.WithCancel(context.Background())
		s.unlisten = stop
		go s.listen(ctx)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.wakers[queue] = slices.DeleteFunc(s.wakers[queue], func(f *func()) bool { return f == &fn }); len(s.wakers[queue]) == 0 {
			delete(s.wakers, queue)
		}
		if len(s.wakers) == 0 && s.unlisten != nil {
			s.unlisten()
			s.unlisten = nil
		}
	}
}

// listen passes notifications on. If the connection breaks, it makes another one and wakes all
// queues, because it may have missed notifications.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		s.listenOnce(ctx)
		s.mu.Lock()
		pause := max(time.Second, time.Until(s.deaf))
		s.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (s *Store) listenOnce(ctx context.Context) {
	pooled, err := s.forBeats().Acquire(ctx)
	if err != nil {
		return
	}
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	s.mu.Lock()
	s.hangUp = hangUp
	s.mu.Unlock()
	conn := pooled.Hijack()
	defer conn.Close(context.Background())
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return
	}
	s.wakeAll("")
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return
		}
		s.wakeAll(n.Payload)
	}
}

// wakeAll calls the functions that wait for the queue; "" is all queues.
func (s *Store) wakeAll(queue string) {
	s.mu.Lock()
	var fns []*func()
	for name, waiting := range s.wakers {
		if queue == "" || name == queue {
			fns = append(fns, waiting...)
		}
	}
	s.mu.Unlock()
	for _, fn := range fns {
		(*fn)()
	}
}
