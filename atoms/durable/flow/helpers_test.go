package flow_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
)

// A world has one store, and processes with the queue "q" of it. Its clock is that of a bubble.
type world struct {
	*testing.T
	store durable.Store
	mu    sync.Mutex
	log   []string
}

// in runs a test in a bubble.
func in(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(&world{T: t, store: durable.Memory()}) })
}

// note says that something has happened.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// happened returns what has happened since the last call.
func (w *world) happened() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := fmt.Sprint(w.log)
	w.log = nil
	return log
}

func (w *world) equal(what string, got, want any) {
	w.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

type body = func(ctx context.Context, item string) error

// process starts a process that runs the queue; stop ends it.
func (w *world) process(work body, opts durable.Options) (q *durable.Queue[string], stop func()) {
	w.Helper()
	opts.Name, opts.Lease, opts.Poll = "q", cmp.Or(opts.Lease, time.Minute), cmp.Or(opts.Poll, 10*time.Second)
	q, err := durable.New(w.store, func(item string) string { return item }, work, opts)
	w.ok(err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := q.Run(w.Context()); err != nil {
			w.Error(err)
		}
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			w.ok(q.Close())
			<-ended
		})
	}
	w.Cleanup(stop)
	return q, stop
}

func (w *world) enqueue(q *durable.Queue[string], item string) durable.ItemID {
	w.Helper()
	id, err := q.Enqueue(w.Context(), item)
	w.ok(err)
	return id
}

// settle lets time pass.
func (w *world) settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) explain(q *durable.Queue[string], id durable.ItemID) durable.Explanation {
	w.Helper()
	x, err := q.Explain(w.Context(), id)
	w.ok(err)
	return x
}

func (w *world) state(q *durable.Queue[string], id durable.ItemID) durable.State {
	w.Helper()
	return w.explain(q, id).Item.State
}

// step is a step that notes that it ran, and how it is undone.
func (w *world) step(ctx context.Context, name string, errs ...error) (int, error) {
	return flow.Do(ctx, flow.Step[int]{Name: name, Do: func(context.Context) (int, error) {
		w.note("%s", name)
		for _, err := range errs {
			return 0, err
		}
		return len(name), nil
	}, Compensate: func(_ context.Context, result int, known bool) error {
		w.note("undo %s %d %v", name, result, known)
		return nil
	}})
}

// plain is a step without Compensate.
func (w *world) plain(ctx context.Context, name string, errs ...error) (int, error) {
	return flow.Do(ctx, flow.Step[int]{Name: name, Do: func(context.Context) (int, error) {
		w.note("%s", name)
		for _, err := range errs {
			return 0, err
		}
		return len(name), nil
	}})
}
