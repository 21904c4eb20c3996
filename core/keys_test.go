package core_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
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

// takes is a body that takes so long.
func takes(d time.Duration) coretest.Body {
	return func(context.Context) error {
		time.Sleep(d)
		return nil
	}
}

func TestKeyedCoordinatorLifecycle(t *testing.T) {
	var key atomic.Int64
	lanes := []core.Lane{{Name: "hot", Limit: 2, Depth: 1}, {Name: "normal", Depth: 3}}
	for name, opts := range map[string]core.Options{
		"keys":            {MaxConcurrency: 4, MaxPerKey: 2},
		"keys and lanes":  {MaxConcurrency: 2, Lanes: lanes},
		"heeding signals": {MaxConcurrency: 2, Lanes: []core.Lane{{Name: "a", CancelOn: "stop.*", DeferOn: "wait"}}, ResumeOn: "go"},
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

// Items of one key run one after the other, in the order in which they were
// enqueued, beside those of other keys.
func TestKeysKeepOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxConcurrency: 8})
		journals := make(map[string]*journal)
		want := make(map[string][]string)
		for i := range 100 {
			key := fmt.Sprint("key ", i*i%7)
			j := journals[key]
			if j == nil {
				j = new(journal)
				journals[key] = j
			}
			step := fmt.Sprint(i)
			want[key] = append(want[key], step+" starts", step+" ends")
			enqueue(t, c, job{key, func(context.Context) error {
				j.note(step + " starts")
				time.Sleep(time.Duration(100-i) * time.Millisecond) // the later, the quicker
				j.note(step + " ends")
				return nil
			}})
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		for key, j := range journals {
			j.check(t, want[key]...)
		}
	})
}

func TestMaxPerKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, most := range []int{1, 2, 5} {
			c := jobs(t, core.Options{MaxConcurrency: 4, MaxPerKey: most})
			g := newGate()
			for range 6 {
				enqueue(t, c, job{"a", g.body})
			}
			synctest.Wait()
			checkEqual(t, fmt.Sprint("running with MaxPerKey ", most), c.Stats().Running, min(most, 4))
			g.open()
			checkError(t, "Drain", c.Drain(t.Context()), nil)
		}
		c := jobs(t, core.Options{MaxConcurrency: 4}) // the default
		g := newGate()
		enqueue(t, c, job{"a", g.body})
		enqueue(t, c, job{"a", g.body})
		synctest.Wait()
		checkEqual(t, "running by default", c.Stats().Running, 1)
		g.open()
	})
}

// Weak point 7: an item whose key is busy holds a slot and keeps all behind it
// waiting, also those of free keys.
func TestBusyKeyHoldsUpNobody(t *testing.T) {
	const colds = 20
	run := func(t *testing.T, hot int) (ends []time.Duration) {
		c := jobs(t, core.Options{MaxConcurrency: 2, MaxQueued: 10_000})
		begun := time.Now()
		ended := make([]time.Duration, colds)
		for range hot {
			enqueue(t, c, job{"hot", takes(time.Hour)})
		}
		for i := range colds {
			enqueue(t, c, job{fmt.Sprint("cold ", i), func(context.Context) error {
				time.Sleep(time.Second)
				ended[i] = time.Since(begun)
				return nil
			}})
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		return ended
	}
	bubble(t, func(t *testing.T) {
		// One slot is the hot key's. With the other the cold ones finish as if
		// they were alone with it.
		var alone []time.Duration
		for i := range colds {
			alone = append(alone, time.Duration(i+1)*time.Second)
		}
		checkSlice(t, "cold keys beside a hot one", run(t, 1000), alone)
	})
}

// Weak point 13: a key with many items is refused, and starves the others all the
// same. Here keys take turns, so that it is neither.
func TestKeysTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c := jobs(t, core.Options{MaxConcurrency: 1})
		g := newGate()
		enqueue(t, c, job{"first", g.body})
		synctest.Wait()
		for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1", "a5", "b3"} {
			enqueue(t, c, job{name[:1], j.noting(name)})
		}
		g.open()
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		j.check(t, "a1", "b1", "c1", "a2", "b2", "a3", "b3", "a4", "a5")
	})
	bubble(t, func(t *testing.T) { // also if two of one may run at once
		var j journal
		c := jobs(t, core.Options{MaxConcurrency: 1, MaxPerKey: 2})
		g := newGate()
		enqueue(t, c, job{"first", g.body})
		synctest.Wait()
		for _, name := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
			enqueue(t, c, job{name[:1], j.noting(name)})
		}
		g.open()
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		j.check(t, "a1", "b1", "c1", "a2", "b2", "a3")
	})
}

// What came while an operation ran goes before what its end lets start, though
// nobody has looked at it before that end.
func TestWhoCameBeforeTheEndGoesFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c := jobs(t, core.Options{MaxConcurrency: 1})
		g := newGate()
		enqueue(t, c, job{"a", g.body})
		synctest.Wait()
		for _, name := range []string{"a2", "a3", "b1", "c1"} {
			enqueue(t, c, job{name[:1], j.noting(name)})
		}
		g.open()
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		j.check(t, "b1", "c1", "a2", "a3")
	})
}

// Weak point 13: over the threshold, TryEnqueue refuses items of a hot key, and
// nothing says when it is over. Here a hot key is like any other, and makes
// progress while cold ones come all the time.
func TestHotKeyIsNeitherRefusedNorStarved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxConcurrency: 1, MaxQueued: 1000})
		var order []string
		add := func(key string) {
			enqueue(t, c, job{key, func(context.Context) error {
				order = append(order, key)
				time.Sleep(time.Second)
				return nil
			}})
		}
		for range 100 {
			add("hot") // all accepted
		}
		time.Sleep(time.Second / 2)
		for i := range 50 { // as many cold ones as the half of what can be done
			add(fmt.Sprint("cold ", i))
			time.Sleep(2 * time.Second)
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		hot := 0
		for _, key := range order[:60] {
			if key == "hot" {
				hot++
			}
		}
		checkEqual(t, "items of the hot key among the first 60", hot, 30)
		checkEqual(t, "succeeded", c.Stats().Succeeded, 150)
	})
}

// The end of an operation may let two others start: one of its key, and one of its
// lane. Nobody else is there to notice.
func TestEndOfOneStartsTwo(t *testing.T) {
	lanes := []core.Lane{{Name: "narrow", Limit: 1}, {Name: "wide"}}
	// scene has an operation run in the narrow lane with key "a", and one of its
	// key and one of its lane wait for it.
	scene := func(t *testing.T, opts core.Options) (c *core.Coordinator[job], first, next *gate) {
		opts.Lanes, opts.MaxConcurrency = lanes, 8
		c = jobs(t, opts)
		first, next = newGate(), newGate()
		enqueue(t, c.Lane("narrow"), job{"a", first.body})
		synctest.Wait()
		enqueue(t, c.Lane("wide"), job{"a", next.body})
		enqueue(t, c.Lane("narrow"), job{"b", next.body})
		synctest.Wait()
		if s := c.Stats(); s.Running != 1 || s.Pending != 2 {
			t.Fatalf("got %v, want one running and two pending", s)
		}
		return c, first, next
	}
	check := func(t *testing.T, c *core.Coordinator[job], next *gate, pending int) {
		t.Helper()
		synctest.Wait()
		if s := c.Stats(); s.Running != 2 || s.Pending != pending {
			t.Errorf("got %v, want both running", s)
		}
		c.Resume()
		c.Sink().Retract("*")
		next.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	}
	t.Run("at the end", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c, first, next := scene(t, core.Options{})
			first.open()
			check(t, c, next, 0)
		})
	})
	t.Run("of a goroutine that ends", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := jobs(t, core.Options{MaxConcurrency: 8, Lanes: lanes})
			stop, next := newGate(), newGate()
			enqueue(t, c.Lane("narrow"), job{"a", func(context.Context) error {
				<-stop.opened
				runtime.Goexit()
				return nil
			}})
			synctest.Wait()
			enqueue(t, c.Lane("wide"), job{"a", next.body})
			enqueue(t, c.Lane("narrow"), job{"b", next.body})
			synctest.Wait()
			stop.open()
			check(t, c, next, 0)
		})
	})
	// Others are deferred at the time, so that nobody looks for arrivals.
	t.Run("while deferred", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c, first, next := scene(t, core.Options{DeferOn: "wait", MaxDefer: 10 * time.Second})
			c.Sink().Raise("wait")
			time.Sleep(15 * time.Second) // the two have been deferred for long enough
			enqueue(t, c.Lane("wide"), job{"c", next.body})
			synctest.Wait()
			checkEqual(t, "running", c.Stats().Running, 1)
			first.open()
			synctest.Wait()
			checkEqual(t, "forced", c.Stats().Forced, 2)
			check(t, c, next, 1)
		})
	})
}

// Weak point 7: per-key gates are disposed under running bodies, whose release then
// fails and skips all bookkeeping.
func TestCloseWhileKeysAreBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxConcurrency: 4, MaxPerKey: 2, MaxQueued: 100})
		finalized := 0
		c.OnFinalized(func(core.Snapshot) { finalized++ })
		for i := range 50 {
			enqueue(t, c, job{fmt.Sprint(i % 3), untilCancelled})
		}
		synctest.Wait()
		closeDown(t, c)
		s := c.Stats()
		if s.Cancelled != 50 || s.Pending+s.Running != 0 {
			t.Errorf("got %v, want all 50 cancelled", s)
		}
		checkEqual(t, "finalized", finalized, 50)
	})
}

// Weak point 7: the selector runs twice, once of these where its failure stops
// everything. Here it is asked once, in Enqueue, on the caller's goroutine.
func TestKeyIsAskedForOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		calls := make(map[int]int) // without a lock: the race detector sees whether others call
		c := core.Must(core.NewKeyedCoordinator(func(i int) string {
			calls[i]++
			return fmt.Sprint(i % 3)
		}, func(context.Context, int) error {
			time.Sleep(time.Second)
			return nil
		}, core.Options{MaxConcurrency: 2, MaxQueued: 2, CancelOn: "stop"}))
		for i := range 10 {
			if _, err := c.Enqueue(t.Context(), i); err != nil { // many of them wait for room
				t.Fatal(err)
			}
		}
		checkError(t, "Do", c.Do(t.Context(), 10), nil)
		c.Sink().Raise("stop")
		if _, err := c.TryEnqueue(11); err == nil {
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

// Asked once also where the oldest is dropped to make room, or the item is.
func TestKeyIsAskedForOnceWhenDropping(t *testing.T) {
	bubble(t, func(t *testing.T) {
		calls := 0
		g := newGate()
		c := core.Must(core.NewKeyedCoordinator(func(int) string { calls++; return "k" },
			func(ctx context.Context, _ int) error { return g.body(ctx) },
			core.Options{MaxConcurrency: 1, MaxQueued: 2, DropOldest: true}))
		for i := range 10 {
			enqueue(t, c, i)
		}
		checkEqual(t, "calls", calls, 10)
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "calls", calls, 10)
	})
}

// Weak point 7: a failing selector kills the pump. Here its panic is the caller's,
// and leaves nothing behind.
func TestPanickingKeyReachesTheCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := core.Must(core.NewKeyedCoordinator(func(i int) string {
			if i < 0 {
				panic(errOnPurpose)
			}
			return "k"
		}, func(context.Context, int) error { return nil }, core.Options{MaxQueued: 1}))
		for name, call := range map[string]func(){
			"Enqueue":    func() { c.Enqueue(t.Context(), -1) },
			"TryEnqueue": func() { c.TryEnqueue(-1) },
			"Do":         func() { c.Do(t.Context(), -1) },
			"in a lane":  func() { c.Lane("none").TryEnqueue(-1) },
		} {
			func() {
				defer func() { checkEqual(t, name+": panic", recover(), any(errOnPurpose)) }()
				call()
			}()
		}
		s := c.Stats()
		checkError(t, "the books", coretest.CheckBooks(s), nil)
		if s.Enqueued+s.Rejected != 0 || s.Pending != 0 {
			t.Errorf("got %v, want nothing", s)
		}
		for i := range 3 {
			checkError(t, "Do", c.Do(t.Context(), i), nil)
		}
	})
}

type tenant string

// Weak point 7: keys are compared by one thing and shown by another. Here a key is
// its text, and a typed one just as good; the empty one is a key like any other.
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
		checkSlice(t, "running", running, []string{"a", "", "b"})
		checkSlice(t, "pending", pending, []string{"a", ""})
		n := 0
		for range c.Operations(core.OperationQuery{Status: core.StatusPending, Key: "a"}) {
			n++ // what the original counts per key
		}
		checkEqual(t, "pending of key a", n, 1)
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

// An operation may call itself something else; its turn stays its key's.
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
		// Nothing of either key is left to be in the way.
		for _, key := range []string{"a", "b"} {
			checkError(t, "Do", c.Do(t.Context(), job{key, quick}), nil)
		}
	})
}

// Weak point 7: an item that is counted for its key, and then not accepted, locks
// the key out for good.
func TestFailedEnqueueLeavesNothingToItsKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxConcurrency: 1, MaxQueued: 1, CancelOn: "stop"})
		g := newGate()
		enqueue(t, c, job{"a", g.body})
		synctest.Wait()
		enqueue(t, c, job{"b", quick})
		for range 20 {
			_, err := c.TryEnqueue(job{"a", quick})
			checkError(t, "TryEnqueue", err, core.ErrFull)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
			_, err = c.Enqueue(ctx, job{"a", quick})
			checkError(t, "Enqueue", err, errOnPurpose)
			cancel()
		}
		c.Sink().Raise("stop")
		for range 20 {
			_, err := c.TryEnqueue(job{"a", quick})
			checkRefusal(t, err, "stop")
		}
		c.Sink().Retract("stop")
		g.open()
		for range 3 {
			checkError(t, "Do", c.Do(t.Context(), job{"a", quick}), nil)
		}
		s := c.Stats()
		checkError(t, "the books", coretest.CheckBooks(s), nil)
		checkEqual(t, "rejected", s.Rejected, 60)
	})
}

// An operation that is cancelled, refused or dropped before its turn comes takes
// nothing with it.
func TestKeyOfOneThatDoesNotRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c := jobs(t, core.Options{MaxConcurrency: 4, CancelOn: "stop", MaxQueued: 3, DropOldest: true})
		g := newGate()
		enqueue(t, c, job{"a", g.body})
		synctest.Wait()
		dropped := enqueue(t, c, job{"a", j.noting("dropped")})
		cancelled := enqueue(t, c, job{"a", j.noting("cancelled")})
		enqueue(t, c, job{"a", j.noting("third")})
		enqueue(t, c, job{"a", j.noting("fourth")})
		c.Cancel(cancelled, nil)
		enqueue(t, c, job{"a", j.noting("fifth")})
		checkStatus(t, c, dropped, core.StatusDropped)
		checkStatus(t, c, cancelled, core.StatusCancelled)
		g.open()
		synctest.Wait()
		j.check(t, "third", "fourth", "fifth")

		g = newGate()
		enqueue(t, c, job{"b", g.body})
		synctest.Wait()
		refused := enqueue(t, c, job{"b", j.noting("refused")})
		c.Sink().Raise("stop")
		g.open()
		synctest.Wait()
		checkStatus(t, c, refused, core.StatusRefused)
		c.Sink().Retract("stop")
		checkError(t, "Do", c.Do(t.Context(), job{"b", quick}), nil)
	})
}

// DropOldest drops who has waited longest, busy key or not, whoever's turn it is.
func TestDropOldestOfKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := jobs(t, core.Options{MaxConcurrency: 2, MaxQueued: 3, DropOldest: true})
		g := newGate()
		enqueue(t, c, job{"a", g.body})
		enqueue(t, c, job{"x", g.body})
		synctest.Wait()
		var ids []core.OperationID
		for _, key := range []string{"a", "b", "a", "c", "d"} {
			ids = append(ids, enqueue(t, c, job{key, g.body}))
		}
		for i, want := range []core.Status{
			core.StatusDropped, core.StatusDropped, core.StatusPending, core.StatusPending, core.StatusPending,
		} {
			checkStatus(t, c, ids[i], want)
		}
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

// A deferred coordinator runs who was enqueued first when MaxDefer is over,
// whoever's turn it is; else a key with many items would hold up the others.
func TestMaxDeferOfKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		begun := time.Now()
		c := jobs(t, core.Options{MaxConcurrency: 8, DeferOn: "wait", MaxDefer: 10 * time.Second})
		c.Sink().Hold("wait", "", 0)
		noting := func(name string) coretest.Body {
			return func(context.Context) error {
				j.note(fmt.Sprint(name, " ", time.Since(begun)))
				return nil
			}
		}
		for _, name := range []string{"a1", "b1", "b2", "a2"} {
			enqueue(t, c, job{name[:1], noting(name)})
			time.Sleep(time.Second)
		}
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		j.check(t, "a1 10s", "b1 11s", "b2 12s", "a2 13s")
		checkEqual(t, "forced", c.Stats().Forced, 4)
	})
}

// ForEachKeyed keeps the order of each key and lets other keys pass a busy one.
func TestForEachKeyedBesideABusyKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		items := func(names ...string) iter.Seq[string] { return slices.Values(names) }
		var j journal
		err := core.ForEachKeyed(t.Context(), items("a1", "a2", "b1", "b2", "c1"),
			func(name string) string { return name[:1] },
			func(_ context.Context, name string) error {
				if name[:1] == "a" {
					time.Sleep(10 * time.Second)
				} else {
					time.Sleep(time.Second)
				}
				j.note(name)
				return nil
			}, core.Options{MaxConcurrency: 2, MaxQueued: 3})
		checkError(t, "ForEachKeyed", err, nil)
		j.check(t, "b1", "c1", "b2", "a1", "a2")
	})
}

// A key that panics in a loop ends the loop, after what runs.
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

func TestKeyedBadInput(t *testing.T) {
	work := func(context.Context, int) error { return nil }
	if _, err := core.NewKeyedCoordinator[int, string](nil, work, core.Options{}); err == nil {
		t.Error("nil key: got no error")
	}
	if _, err := core.NewKeyedCoordinator(func(int) string { return "" }, nil, core.Options{}); err == nil {
		t.Error("nil work: got no error")
	}
	if _, err := core.NewKeyedResultCoordinator[int, int, string](nil, func(context.Context, int) (int, error) { return 0, nil }, core.Options{}); err == nil {
		t.Error("nil key of a result coordinator: got no error")
	}
	err := core.ForEachKeyed[int, string](t.Context(), upTo(1), nil, work, core.Options{})
	if err == nil || errors.Is(err, core.ErrClosed) {
		t.Errorf("ForEachKeyed with a nil key: got %v, want an error that says so", err)
	}
}
