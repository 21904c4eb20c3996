package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// job is a body with a key.
type job struct {
	key  string
	body coretest.Body
}

func (j job) run(ctx context.Context) error { return j.body(ctx) }

// jobs makes a coordinator of jobs with keys.
func jobs(t testing.TB, opts core.Options) *core.Coordinator[job] {
	t.Helper()
	c, err := core.NewKeyedCoordinator(
		func(j job) string { return j.key },
		func(ctx context.Context, j job) error { return j.run(ctx) },
		opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestKeyedCoordinatorLifecycle(t *testing.T) {
	var key atomic.Int64
	lanes := []core.Lane{{Name: "hot", Limit: 2, Depth: 1}, {Name: "normal", Depth: 3}}
	for name, opts := range map[string]core.Options{
		"keys":           {MaxConcurrency: 4, MaxPerKey: 2},
		"keys and lanes": {MaxConcurrency: 2, Lanes: lanes},
		"with gates":     {MaxConcurrency: 2, Lanes: []core.Lane{{Name: "a", CancelOn: "stop.*", DeferOn: "wait"}}, ResumeOn: "go"},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				return subject(core.Must(core.NewKeyedCoordinator(func(coretest.Body) string {
					return fmt.Sprint(key.Add(1) % 100) // the suite does not expect its bodies to wait for each other
				}, coretest.Run, opts)))
			})
		})
	}
	t.Run("lanes", func(t *testing.T) {
		coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
			return subject(bodies(t, core.Options{MaxConcurrency: 2, Lanes: lanes}))
		})
	})
}

// The key function is called once for each item, on the goroutine of the caller, also for an item that waits for
// room, is refused, or drops the oldest.
func TestKeyFunctionIsCalledOnce(t *testing.T) {
	for _, dropOldest := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			calls := make(map[int]int) // without a lock: the race detector sees whether others call
			c := core.Must(core.NewKeyedCoordinator(func(i int) string {
				calls[i]++
				return fmt.Sprint(i % 3)
			}, func(context.Context, int) error {
				time.Sleep(time.Second)
				return nil
			}, core.Options{MaxConcurrency: 2, MaxQueued: 2, CancelOn: "stop", DropOldest: dropOldest}))
			for i := range 10 {
				accepted(t)(c.Enqueue(t.Context(), i))
			}
			checkError(t, "Do", c.Do(t.Context(), 10), nil)
			c.Sink().Raise("stop")
			if _, err := c.TryEnqueue(context.Background(), 11); err == nil {
				t.Error("TryEnqueue: got no error")
			}
			checkError(t, "Drain", c.Drain(t.Context()), nil)
			for i := range 11 {
				checkEqual(t, fmt.Sprint("calls for item ", i), calls[i], 1)
			}
			if calls[11] > 1 {
				t.Errorf("calls for an item that was refused: got %d, want at most 1", calls[11])
			}
		})
	}
}

// A panic of the key function reaches the caller, and leaves nothing behind.
func TestPanickingKeyReachesTheCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		key := func(i int) string {
			if i < 0 {
				panic(errOnPurpose)
			}
			return "k"
		}
		c := core.Must(core.NewKeyedCoordinator(key, func(context.Context, int) error { return nil }, core.Options{MaxQueued: 1}))
		r := core.Must(core.NewKeyedResultCoordinator(key, square, core.Options{}))
		for name, call := range map[string]func(){
			"Enqueue":            func() { c.Enqueue(t.Context(), -1) },
			"TryEnqueue":         func() { c.TryEnqueue(context.Background(), -1) },
			"Do":                 func() { c.Do(t.Context(), -1) },
			"in a lane":          func() { c.Lane("none").TryEnqueue(context.Background(), -1) },
			"Submit":             func() { r.Submit(t.Context(), -1) },
			"Do with a result":   func() { r.Do(t.Context(), -1) },
			"Enqueue for result": func() { r.Enqueue(t.Context(), -1) },
		} {
			func() {
				defer func() { checkEqual(t, name+": panic", recover(), any(errOnPurpose)) }()
				call()
			}()
		}
		for _, s := range []core.Stats{c.Stats(), r.Stats()} {
			coretest.Check(t, s.Enqueued+s.Rejected == 0 && s.Pending == 0, "got %v, want nothing", s)
		}
		for i := range 3 {
			checkError(t, "Do", c.Do(t.Context(), i), nil)
		}
	})
}

type tenant string

// Keys are compared by their text, and may have any string type. The empty key is no key: such items run side by
// side.
func TestKeysAreTexts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		c := core.Must(core.NewKeyedCoordinator(func(k tenant) tenant { return k },
			func(ctx context.Context, _ tenant) error { return g.body(ctx) },
			core.Options{MaxConcurrency: 8}))
		for _, k := range []tenant{"a", "", "a", "", "b"} {
			enqueue(t, c, k)
		}
		synctest.Wait()
		var running, pending []string
		for s := range c.Operations(core.OperationQuery{Status: core.StatusRunning}) {
			running = append(running, s.Key)
		}
		for s := range c.Operations(core.OperationQuery{Status: core.StatusPending}) {
			pending = append(pending, s.Key)
		}
		checkSlice(t, "running", running, []string{"a", "", "", "b"})
		checkSlice(t, "pending", pending, []string{"a"})
		n := 0
		for range c.Operations(core.OperationQuery{Status: core.StatusPending, Key: "a"}) {
			n++ // what the original counts per key
		}
		checkEqual(t, "pending of key a", n, 1)
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

// SetKey changes the key that an operation shows, but not its turn.
func TestSetKeyDoesNotDisturbScheduling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxConcurrency: 4})
		g := newGate()
		renamed := func(ctx context.Context) error {
			core.OperationFrom(ctx).SetKey("b")
			return g.body(ctx)
		}
		enqueue(t, c, job{"a", renamed})
		synctest.Wait()
		second := enqueue(t, c, job{"a", renamed})
		other := enqueue(t, c, job{"b", g.body})
		synctest.Wait()
		checkStatus(t, c, second, core.StatusPending) // its key is busy
		checkStatus(t, c, other, core.StatusRunning)  // and this one is not
		g.open()
		synctest.Wait()
		checkEqual(t, "succeeded", c.Stats().Succeeded, 3)
		// Neither key holds up anything.
		for _, key := range []string{"a", "b"} {
			checkError(t, "Do", c.Do(t.Context(), job{key, quick}), nil)
		}
	})
}

// A key function that panics ends the loop, after the bodies that run.
func TestForEachKeyedPanickingKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := false
		defer func() {
			checkEqual(t, "panic", recover(), any(errOnPurpose))
			checkEqual(t, "what ran has ended", ended, true)
		}()
		core.ForEachKeyed(t.Context(), upTo(3), func(i int) string {
			if i == 1 {
				synctest.Wait()
				panic(errOnPurpose)
			}
			return "k"
		}, func(ctx context.Context, _ int) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return nil
		}, core.Options{})
	})
}
