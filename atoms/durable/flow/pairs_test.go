package flow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
	"github.com/ephemeralgo/ephemeral/core"
)

// mortal is the store as a process has it that may be stopped: while it is, its calls fail.
type mortal struct {
	durable.Store
	stopped, unwritten atomic.Bool // all calls fail, or Record does
}

var errStopped = errors.New("stopped")

func (m *mortal) Turn(ctx context.Context, node durable.Node, ends []durable.End, want durable.Want) (durable.Turned, error) {
	if m.stopped.Load() {
		return durable.Turned{}, errStopped
	}
	return m.Store.Turn(ctx, node, ends, want)
}

func (m *mortal) Beat(ctx context.Context, node durable.Node, note string) (durable.Beaten, error) {
	if m.stopped.Load() {
		return durable.Beaten{}, errStopped
	}
	return m.Store.Beat(ctx, node, note)
}

func (m *mortal) Record(ctx context.Context, queue string, records []durable.Record) ([]bool, error) {
	if m.stopped.Load() || m.unwritten.Load() {
		return nil, errStopped
	}
	return m.Store.Record(ctx, queue, records)
}

// Processes die at random moments. A step that returned, and after which another one began, never runs again; what is undone, is undone for each step that began.
func TestProcessesDie(t *testing.T) {
	seeds := uint64(3)
	if os.Getenv("EPHEMERAL_LONG") != "" {
		seeds = 10
	}
	for seed := range seeds {
		in(t, func(w *world) {
			random := rand.New(rand.NewPCG(seed, 1))
			began, followed := map[string]int{}, map[string]bool{}
			undone := map[string]int{}
			last := map[string]string{}
			work := func(m *mortal) body {
				return func(ctx context.Context, item string) error {
					for n := range 6 {
						name := fmt.Sprint(item, n)
						_, err := flow.Do(ctx, flow.Step[int]{Name: name, Do: func(ctx context.Context) (int, error) {
							w.mu.Lock()
							defer w.mu.Unlock()
							if m.stopped.Load() {
								return 0, errStopped // it is dead: nothing happens any more
							}
							if began[name]++; followed[name] {
								w.Errorf("seed %d: step %s runs again", seed, name)
							}
							if before := last[item]; before != name {
								followed[before], last[item] = before != "", name
							}
							pause := time.Duration(random.IntN(2000)) * time.Millisecond
							w.mu.Unlock()
							time.Sleep(pause)
							w.mu.Lock()
							return n, nil
						}, Compensate: func(context.Context, int, bool) error {
							w.mu.Lock()
							defer w.mu.Unlock()
							if !m.stopped.Load() {
								undone[name]++
							}
							return nil
						}})
						if err != nil {
							return err
						}
					}
					if item == "b" {
						return durable.Permanent(errNo)
					}
					return nil
				}
			}
			var q *durable.Queue[string]
			var ids []durable.ItemID
			store := w.store
			for round := range 30 {
				m := &mortal{Store: store}
				w.store = m
				var stop func()
				q, stop = w.process(work(m), durable.Options{Lease: time.Second, Poll: 100 * time.Millisecond, MaxAttempts: -1})
				if round == 0 {
					ids = []durable.ItemID{w.enqueue(q, "a"), w.enqueue(q, "b")}
				}
				if round < 29 {
					w.mu.Lock()
					pause := time.Duration(random.IntN(4000)) * time.Millisecond
					w.mu.Unlock()
					w.settle(pause)
				} else {
					w.settle(10 * time.Minute)
				}
				m.stopped.Store(round < 29)
				w.settle(3 * time.Second)
				stop()
			}
			w.store = store
			w.equal("ends", []any{w.state(q, ids[0]), w.state(q, ids[1])}, []any{durable.Done, durable.Dead})
			for name := range began {
				if strings.HasPrefix(name, "b") && undone[name] == 0 || strings.HasPrefix(name, "a") && undone[name] > 0 {
					w.Errorf("seed %d: step %s: undone %d times", seed, name, undone[name])
				}
			}
		})
	}
}

// A process that was stopped comes back. What it wants to record is refused, and its body gets ErrLeaseLost.
func TestStoppedProcess(t *testing.T) {
	in(t, func(w *world) {
		m := &mortal{Store: w.store}
		store := w.store
		w.store = m
		var got error
		q, _ := w.process(func(ctx context.Context, _ string) error {
			if _, err := w.plain(ctx, "a"); err != nil {
				return err
			}
			m.stopped.Store(true)
			time.Sleep(time.Minute)
			m.stopped.Store(false)
			_, got = w.step(ctx, "stale")
			return got
		}, durable.Options{Lease: 5 * time.Second})
		id := w.enqueue(q, "k")
		w.settle(time.Second)
		w.store = store
		q, _ = w.process(func(ctx context.Context, _ string) error {
			_, err := w.step(ctx, "b")
			return errors.Join(err, flow.Sleep(ctx, "nap", time.Hour))
		}, durable.Options{Lease: 5 * time.Second})
		w.settle(2 * time.Minute)
		if !errors.Is(got, durable.ErrLeaseLost) && !errors.Is(got, core.ErrCancelled) && !errors.Is(got, context.Canceled) {
			w.Error(got)
		}
		j, err := q.History(w.Context(), id)
		w.ok(err)
		w.equal("steps", []any{len(j.Steps), j.Steps[0].Name, w.happened()}, []any{2, "b", "[a b]"})
	})
}

// A parked flow keeps its key, and no lane or slot. Pause, Move, a Unique id and Replace meet it.
func TestParkedFlows(t *testing.T) {
	in(t, func(w *world) {
		runs := 0
		q, _ := w.process(func(ctx context.Context, item string) error {
			runs++
			if _, err := w.plain(ctx, "first"); err != nil {
				return err
			}
			_, err := flow.Await(ctx, "go", "go", 1000*time.Hour)
			return err
		}, durable.Options{MaxConcurrency: 1, Poll: time.Minute, Lease: time.Hour, Lanes: []core.Lane{{Name: "hot", Limit: 1}, {Name: "normal"}}})
		unique := q.With(durable.ItemOptions{Lane: "hot", Unique: "u", UniqueFor: 100 * time.Hour, Replace: true})
		first := w.enqueue(unique, "a")
		w.settle(time.Second)
		next, other := w.enqueue(q, "a"), w.enqueue(q.Lane("hot"), "b")
		w.settle(time.Second)
		w.equal("the key waits, the lane does not", []any{w.state(q, next), runs, w.explain(q, other).Flow != nil}, []any{durable.Blocked, 2, true})
		if x := w.explain(q, next).String(); !strings.HasPrefix(x, "behind 1 item of key a; the first waits for go since 2000-01-01T00:00:00Z until ") {
			w.Error(x)
		}
		again := w.enqueue(unique, "a")
		w.equal("a flow is not replaced", again > first, true)
		p, err := q.MoveAll(w.Context(), durable.Query{Key: "a"}, "normal")
		w.equal("moved", []any{p.Changed > 0, err}, []any{true, nil})
		w.ok(q.Pause(w.Context(), durable.Pause{}))
		w.ok(q.Signal(w.Context(), "a", "go", nil))
		w.settle(time.Hour)
		w.equal("paused", []any{w.explain(q, first).Flow.Wait == nil, w.state(q, first)}, []any{true, durable.Ready})
		w.ok(q.Resume(w.Context(), durable.Pause{}))
		w.settle(2 * time.Second)
		w.equal("resumed", w.state(q, first), durable.Done)
		w.ok(q.Signal(w.Context(), "a", "go", nil))
		w.ok(q.SignalItem(w.Context(), again, "go", nil))
		w.settle(2 * time.Second)
		w.equal("all of the key", []any{w.state(q, next), w.state(q, again)}, []any{durable.Done, durable.Done})

		w.settle(25 * time.Hour)
		_, err = q.History(w.Context(), first)
		w.equal("pruned", errors.Is(err, durable.ErrUnknown), true)
		for s, err := range q.Signals(w.Context(), "a", 0) {
			w.Error(s, err)
		}
	})
}

// Steps of an attempt that is snoozed, given back or retried are kept. Many flows are cancelled, and tried again, at once.
func TestManyFlows(t *testing.T) {
	in(t, func(w *world) {
		ends, begins := []error{durable.Snooze(time.Second), errNo}, 0
		q, stop := w.process(func(ctx context.Context, item string) error {
			if _, err := w.step(ctx, "a"); err != nil {
				return err
			}
			if begins++; begins <= len(ends) {
				return ends[begins-1]
			}
			<-ctx.Done()
			return ctx.Err()
		}, durable.Options{})
		id := w.enqueue(q, "x")
		w.settle(time.Minute)
		stop()
		w.equal("steps are kept", []any{begins, w.happened()}, []any{3, "[a]"})
		fails := true
		q, _ = w.process(func(ctx context.Context, item string) error {
			if _, err := w.step(ctx, "a"); err != nil {
				return err
			}
			if fails {
				return durable.Permanent(errNo)
			}
			return flow.Sleep(ctx, "nap", time.Hour)
		}, durable.Options{HaltOnDead: true})
		w.settle(time.Second)
		w.equal("given back, then undone", []any{w.state(q, id), w.happened()}, []any{durable.Halted, "[undo a 1 true]"})
		ids := []durable.ItemID{w.enqueue(q, "y"), w.enqueue(q, "z"), w.enqueue(q, "z")}
		w.settle(time.Second)
		w.happened()
		fails = false
		p, err := q.AgainAll(w.Context(), durable.Query{Dead: true})
		w.equal("again", []any{p.Changed, err}, []any{3, nil})
		w.settle(time.Second)
		w.equal("again from the start", w.happened(), "[a a a]")
		p, err = q.CancelAll(w.Context(), durable.Query{}, "closed")
		w.equal("cancelled", []any{p.Changed, err}, []any{4, nil})
		w.settle(time.Second)
		w.equal("undone", w.happened(), "[undo a 1 true undo a 1 true undo a 1 true]")
		for _, id := range append(ids, id) {
			w.equal("state", w.state(q, id), durable.Cancelled)
		}
	})
}

// The cost of a flow of 1,000 steps grows with its steps, and a flow that fails in each of its steps lives on.
func TestThousandSteps(t *testing.T) {
	in(t, func(w *world) {
		calls := &counter{Store: w.store}
		w.store = calls
		q, _ := w.process(func(ctx context.Context, _ string) error {
			for n := range 1000 {
				if _, err := flow.Do(ctx, flow.Step[int]{Name: fmt.Sprint(n), Do: func(context.Context) (int, error) { return n, nil }}); err != nil {
					return err
				}
			}
			return nil
		}, durable.Options{})
		id := w.enqueue(q, "a")
		w.settle(time.Minute)
		w.equal("state", w.state(q, id), durable.Done)
		w.equal("records and steps", []any{calls.calls.Load(), calls.steps.Load()}, []any{999, 999})
	})
}

// counter counts what is recorded.
type counter struct {
	durable.Store
	calls, steps atomic.Int64
}

func (c *counter) Record(ctx context.Context, queue string, records []durable.Record) ([]bool, error) {
	c.calls.Add(1)
	for _, r := range records {
		c.steps.Add(int64(len(r.Steps)))
	}
	return c.Store.Record(ctx, queue, records)
}
