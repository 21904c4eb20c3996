package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// fakeQueue is a stored queue whose items are in memory.
type fakeQueue struct {
	name string

	mu     sync.Mutex
	paused bool
	ready  int
	dead   []inspect.StoredItem
}

func (q *fakeQueue) Name() string { return q.name }

func (q *fakeQueue) Status(context.Context) (inspect.QueueStatus, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return inspect.QueueStatus{
		Counts: []inspect.StateCount{{State: "ready", Items: q.ready}, {State: "running", Items: 3}, {State: "dead", Items: len(q.dead)}},
		Oldest: 90 * time.Second, Nodes: 2, Paused: q.paused, Note: "key ada is paused by " + q.name + ": its endpoint is down",
	}, nil
}

func (q *fakeQueue) Items(_ context.Context, match inspect.ItemQuery) (page inspect.ItemPage, _ error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	from, _ := strconv.Atoi(match.After)
	to := min(len(q.dead), from+match.Limit)
	if page.Items = slices.Clone(q.dead[from:to]); to < len(q.dead) {
		page.Next = strconv.Itoa(to)
	}
	return page, nil
}

func (q *fakeQueue) Again(_ context.Context, id int64) (bool, error) { return q.take(id, 1), nil }

func (q *fakeQueue) Discard(_ context.Context, id int64) (bool, error) { return q.take(id, 0), nil }

func (q *fakeQueue) Item(_ context.Context, id int64) (d inspect.ItemDetail, ok bool, _ error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.dead, func(d inspect.StoredItem) bool { return d.ID == id })
	if i < 0 {
		return d, false, nil
	}
	d = inspect.ItemDetail{StoredItem: q.dead[i], Why: "dead: " + q.dead[i].Err}
	for _, state := range []string{"retry", "dead"} {
		d.History = append(d.History, inspect.ItemAttempt{State: state, Node: q.name, Started: time.Now().Add(-time.Second), Ended: time.Now(), Err: q.dead[i].Err})
	}
	for n, state := range []string{"done", "waits", "half undone"} {
		d.Steps = append(d.Steps, inspect.ItemStep{Name: fmt.Sprint(n, q.name), State: state, Attempts: 1, Started: time.Now(), Signal: q.name})
	}
	return d, true, nil
}

func (q *fakeQueue) Count(context.Context, inspect.ItemQuery) (int, error) { return len(q.dead), nil }

func (q *fakeQueue) AgainAll(context.Context, inspect.ItemQuery) (int, error)   { return 0, nil }
func (q *fakeQueue) DiscardAll(context.Context, inspect.ItemQuery) (int, error) { return 0, nil }
func (q *fakeQueue) CancelAll(context.Context, inspect.ItemQuery, string) (int, error) {
	return 0, nil
}

// A failingQueue has 700 dead items, and its store fails after 500 of them.
type failingQueue struct {
	fakeQueue
	changed int
}

func (q *failingQueue) Count(context.Context, inspect.ItemQuery) (int, error) { return 700, nil }

func (q *failingQueue) AgainAll(context.Context, inspect.ItemQuery) (int, error) {
	if q.changed > 0 {
		return 0, errors.New("disk full")
	}
	q.changed = 500
	return 500, nil
}

func (q *fakeQueue) take(id int64, ready int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.dead)
	q.dead = slices.DeleteFunc(q.dead, func(d inspect.StoredItem) bool { return d.ID == id })
	if len(q.dead) == before {
		return false
	}
	q.ready += ready
	return true
}

func (q *fakeQueue) Pause(context.Context) error  { return q.set(true) }
func (q *fakeQueue) Resume(context.Context) error { return q.set(false) }

func (q *fakeQueue) set(paused bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = paused
	return nil
}

// fakeSchedules are schedules that somebody else starts.
type fakeSchedules struct {
	name string

	mu   sync.Mutex
	list []inspect.ScheduleStatus
}

func (s *fakeSchedules) Name() string { return s.name }

func (s *fakeSchedules) Status() []inspect.ScheduleStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func (s *fakeSchedules) Firings(name string) []inspect.Firing {
	return []inspect.Firing{{Tick: time.Now(), State: "failed", Err: name}}
}

func (s *fakeSchedules) Pause(pattern string) int  { return s.each(pattern, setPaused(true)) }
func (s *fakeSchedules) Resume(pattern string) int { return s.each(pattern, setPaused(false)) }

func (s *fakeSchedules) RunNow(_ context.Context, name string) error {
	s.each(name, func(one *inspect.ScheduleStatus) { one.Last = time.Now() })
	return nil
}

func setPaused(paused bool) func(*inspect.ScheduleStatus) {
	return func(one *inspect.ScheduleStatus) { one.Paused = paused }
}

func (s *fakeSchedules) each(pattern string, do func(*inspect.ScheduleStatus)) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if signals.Match(pattern, s.list[i].Name) {
			do(&s.list[i])
			n++
		}
	}
	return n
}
