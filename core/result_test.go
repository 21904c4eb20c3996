package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// An answer is work that returns a given result.
type answer func(ctx context.Context) (string, error)

func answering(text string) answer {
	return func(context.Context) (string, error) { return text, nil }
}

func answers(_ testing.TB, opts core.Options) *core.ResultCoordinator[answer, string] {
	return core.Must(core.NewResultCoordinator(func(ctx context.Context, a answer) (string, error) { return a(ctx) }, opts))
}

// after is an answer that is given when g is opened.
func (g *gate) after(text string) answer {
	return func(ctx context.Context) (string, error) { return text, g.body(ctx) }
}

func checkResult(t testing.TB, what, got string, err error, want string, wantErr error) {
	t.Helper()
	checkEqual(t, what, got, want)
	checkError(t, what, err, wantErr)
}

func lookup(t testing.TB, c core.Inspector, id core.OperationID) core.Snapshot {
	t.Helper()
	s, ok := c.Lookup(id)
	coretest.Check(t, ok, "operation %d: not found", id)
	return s
}

// An operation that did not succeed has an error that says why, and the result that its body returned with the
// error. Callers get both in every way to ask.
func TestResultOfWhatDidNotSucceed(t *testing.T) {
	type subject struct {
		*core.ResultCoordinator[answer, string]
		sink *signals.Sink
		busy *gate // of the operation that runs before
	}
	for _, test := range []struct {
		name      string
		answer    answer
		interfere func(s subject, id core.OperationID) // while it is pending
		result    string
		want      error
		status    core.Status
	}{
		{"failed, with half a result", func(context.Context) (string, error) { return "half", errOnPurpose }, nil, "half", errOnPurpose, core.StatusFailed},
		{"panicked", func(context.Context) (string, error) { panic(errOnPurpose) }, nil, "", errOnPurpose, core.StatusFailed},
		{"cancelled while pending", answering("late"), func(s subject, id core.OperationID) { s.Cancel(id, errOnPurpose) }, "", errOnPurpose, core.StatusCancelled},
		{"cancelled while running", func(ctx context.Context) (string, error) { return "half", untilCancelled(ctx) }, func(s subject, id core.OperationID) {
			time.AfterFunc(time.Second, func() { s.Cancel(id, errOnPurpose) })
		}, "half", errOnPurpose, core.StatusCancelled},
		{"dropped", answering("late"), func(s subject, _ core.OperationID) {
			for range 2 {
				s.TryEnqueue(context.Background(), answering("newer"))
			}
		}, "", core.ErrDropped, core.StatusDropped},
		{"closed", answering("late"), func(s subject, _ core.OperationID) { go s.Close() }, "", core.ErrClosed, core.StatusCancelled},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, way := range []string{"Wait", "Future.Wait", "Do"} {
				bubble(t, func(t *testing.T) {
					s := subject{sink: signals.NewSink(signals.SinkOptions{}), busy: newGate()}
					s.ResultCoordinator = answers(t, core.Options{MaxConcurrency: 1, MaxQueued: 2, DropOldest: true, Sink: s.sink, MaxTracked: -1})
					first, _ := s.Submit(t.Context(), s.busy.after("first"))
					synctest.Wait()

					var finished core.Snapshot
					s.OnFinalized(func(o core.Snapshot) {
						if o.ID == first.ID()+1 {
							finished = o
						}
					})
					var (
						got string
						err error
						all sync.WaitGroup
					)
					all.Go(func() {
						switch way {
						case "Wait":
							id, _ := s.TryEnqueue(context.Background(), test.answer)
							got, err = s.Wait(t.Context(), id)
						case "Future.Wait":
							f, _ := s.Submit(t.Context(), test.answer)
							got, err = f.Wait(t.Context())
						case "Do":
							got, err = s.Do(t.Context(), test.answer)
						}
					})
					synctest.Wait()
					if test.interfere != nil {
						test.interfere(s, first.ID()+1)
					}
					synctest.Wait()
					s.busy.open()
					all.Wait()
					checkResult(t, way, got, err, test.result, test.want)
					synctest.Wait()
					checkEqual(t, way+": status", finished.Status, test.status)
					checkError(t, "Close", s.Close(), nil)
				})
			}
		})
	}
}

// A Future has the result also when the operation has left the window.
func TestFutureSurvives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := answers(t, core.Options{MaxTracked: -1, EchoCapacity: -1})
		succeeds := core.Must(c.Submit(t.Context(), answering("a")))
		fails := core.Must(c.Submit(t.Context(), func(context.Context) (string, error) { return "half", errOnPurpose }))
		check := func() {
			t.Helper()
			<-succeeds.Done()
			got, err := succeeds.Wait(t.Context())
			checkResult(t, "Wait", got, err, "a", nil)
			got, err = fails.Wait(t.Context())
			checkResult(t, "Wait", got, err, "half", errOnPurpose)
		}
		check()
		_, err := c.Wait(t.Context(), fails.ID())
		checkError(t, "by id", err, core.ErrUnknown)
		checkError(t, "Close", c.Close(), nil)
		check()
	})
}

// A caller that stops waiting for a Future or an id does not change the operation.
func TestResultContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := answers(t, core.Options{MaxTracked: -1})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		g := newGate()
		f, _ := c.Submit(t.Context(), g.after("late"))
		select {
		case <-f.Done():
			t.Error("Done is closed before the end")
		default:
		}
		got, err := f.Wait(ctx)
		checkResult(t, "Future.Wait", got, err, "", errOnPurpose)
		got, err = c.Wait(ctx, f.ID())
		checkResult(t, "Wait", got, err, "", errOnPurpose)
		checkEqual(t, "status", lookup(t, c, f.ID()).Status, core.StatusRunning)
		g.open()
		got, err = f.Wait(t.Context())
		checkResult(t, "Future.Wait once more", got, err, "late", nil)
		got, err = f.Wait(ctx) // has ended, but there is nothing to wait for
		checkResult(t, "Future.Wait when finished", got, err, "late", nil)
	})
}

// A nil result is a result like others.
func TestZeroResults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := core.Must(core.NewResultCoordinator(func(context.Context, int) (any, error) { return nil, nil }, core.Options{}))
		got, err := c.Wait(t.Context(), core.Must(c.TryEnqueue(t.Context(), 1)))
		checkError(t, "Wait", err, nil)
		checkEqual(t, "Wait", got, nil)
		for s, out := range c.Results(core.OperationQuery{}) {
			checkEqual(t, "status", s.Status, core.StatusSucceeded)
			checkEqual(t, "result", out, nil)
			return
		}
		t.Error("got no results")
	})
}

// Each result comes with its operation, and a query selects those that have succeeded; see TestOperationsQuery.
func TestResults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := core.Must(core.NewKeyedResultCoordinator(
			func(n int) string { return fmt.Sprint(n % 2) },
			func(ctx context.Context, n int) (int, error) {
				if n == 5 {
					return 25, errOnPurpose
				}
				return n * n, nil
			}, core.Options{MaxConcurrency: 1, Lanes: lanes(t, "hot, slow")}))
		for n := range 6 {
			accepted(t)(c.TryEnqueue(t.Context(), n))
		}
		accepted(t)(c.Lane("hot").TryEnqueue(t.Context(), 7))
		synctest.Wait()
		c.Pause()
		accepted(t)(c.TryEnqueue(t.Context(), 8)) // pending
		check := func(what string, q core.OperationQuery, want ...int) {
			t.Helper()
			var got []int
			for s, out := range c.Results(q) {
				checkEqual(t, what, fmt.Sprintf("%v %s", s.Status, s.Key), fmt.Sprintf("succeeded %d", out%2))
				got = append(got, out)
			}
			checkSlice(t, what, got, want)
		}
		check("all", core.OperationQuery{}, 0, 1, 4, 9, 16, 49)
		check("some", core.OperationQuery{Key: "1", Lane: "slow", Status: core.StatusFinished, NewestFirst: true}, 9, 1)
		check("failed", core.OperationQuery{Status: core.StatusFailed | core.StatusPending})

		// No lock is held, and leaving early is fine.
		for s := range c.Results(core.OperationQuery{}) {
			c.Evict(s.ID)
			break
		}
		n := 0
		for s := range c.Results(core.OperationQuery{}) {
			c.Evict(s.ID)
			c.Stats()
			n++
		}
		checkEqual(t, "evicted", n, 5)
		check("evicted", core.OperationQuery{})
		checkError(t, "Close", c.Close(), nil)
	})
}

// Results are as of the start of the loop. A result is left out if its operation has left the window by its turn.
func TestResultsEvictedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := answers(t, core.Options{MaxConcurrency: 1})
		var ids []core.OperationID
		for _, text := range []string{"a", "b", "c"} {
			id, _ := c.TryEnqueue(context.Background(), answering(text))
			ids = append(ids, id)
		}
		synctest.Wait()
		var got []string
		for _, text := range c.Results(core.OperationQuery{}) {
			if text == "a" {
				c.Evict(ids[1])
				c.Do(t.Context(), answering("later"))
			}
			got = append(got, text)
		}
		checkSlice(t, "results", got, []string{"a", "c"})
	})
}

// block is a result that is large enough to be looked for in memory.
type block [4096]byte

// blockMaker makes a coordinator of blocks, and weak pointers to the blocks it made.
func blockMaker(opts core.Options) (*core.ResultCoordinator[int, *block], *[]weak.Pointer[block]) {
	var made []weak.Pointer[block]
	opts.MaxConcurrency = 1
	return core.Must(core.NewResultCoordinator(func(context.Context, int) (*block, error) {
		b := new(block)
		made = append(made, weak.Make(b))
		return b, nil
	}, opts)), &made
}

func checkFreed(t *testing.T, what string, b weak.Pointer[block], want bool) {
	t.Helper()
	synctest.Wait() // workers have gone
	runtime.GC()
	if freed := b.Value() == nil; freed != want {
		t.Errorf("%s: freed is %t, want %t", what, freed, want)
	}
}

// A result is kept as long as its operation is in the window, and longer only by a Future. The echo does not keep
// it.
func TestResultMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, made := blockMaker(core.Options{})
		c.TryEnqueue(context.Background(), 0)
		synctest.Wait()
		checkFreed(t, "in the window", (*made)[0], false)
		for s := range c.Results(core.OperationQuery{}) {
			c.Evict(s.ID)
		}
		checkFreed(t, "without a question", (*made)[0], true)

		c.Do(t.Context(), 1)
		checkFreed(t, "Do, in the window", (*made)[1], false)
		for s := range c.Results(core.OperationQuery{}) {
			c.Evict(s.ID)
		}
		checkFreed(t, "Do, evicted", (*made)[1], true)

		id, _ := c.TryEnqueue(context.Background(), 2)
		c.Wait(t.Context(), id)
		c.Evict(id)
		checkFreed(t, "Wait, evicted", (*made)[2], true)

		f, _ := c.Submit(t.Context(), 3)
		synctest.Wait()
		c.Evict(f.ID())
		checkFreed(t, "Future held", (*made)[3], false)
		if got, err := f.Wait(t.Context()); got != (*made)[3].Value() || err != nil {
			t.Errorf("Future.Wait: got %p and error %v, want %p", got, err, (*made)[3].Value())
		}
		runtime.KeepAlive(f)
		f = nil
		checkFreed(t, "Future dropped", (*made)[3], true)

		f, _ = c.Submit(t.Context(), 4)
		synctest.Wait()
		c.Close()
		checkFreed(t, "Future of a closed coordinator", (*made)[4], false)
		runtime.KeepAlive(f)
		runtime.KeepAlive(c)
	})
}

// The item of an operation that has succeeded is not kept. The item of any other operation is kept until it leaves
// the window.
func TestItemMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := core.Must(core.NewResultCoordinator(func(context.Context, *block) (int, error) { return 0, nil }, core.Options{}))
		plain := coordinator(t, func(context.Context, *block) error { return nil }, core.Options{})
		item := func() (*block, weak.Pointer[block]) {
			b := new(block)
			return b, weak.Make(b)
		}
		b, ran := item()
		f, _ := c.Submit(t.Context(), b)
		b, alone := item()
		plain.TryEnqueue(context.Background(), b)
		synctest.Wait()
		c.Pause()
		b, cancelled := item()
		id, _ := c.TryEnqueue(context.Background(), b)
		b = nil
		checkFreed(t, "ran", ran, true)
		checkFreed(t, "ran without a result", alone, true)
		checkFreed(t, "pending", cancelled, false)
		c.Cancel(id, nil)
		checkFreed(t, "cancelled", cancelled, false)
		c.Evict(id)
		checkFreed(t, "evicted", cancelled, true)
		runtime.KeepAlive(f)
		runtime.KeepAlive(c)
		runtime.KeepAlive(plain)
		_ = b
	})
}

// All methods that read results run beside the methods that make and forget them.
func TestStressResults(t *testing.T) {
	c := core.Must(core.NewKeyedResultCoordinator(func(i int) string { return fmt.Sprint(i % 7) },
		func(ctx context.Context, i int) (*int, error) {
			if i%5 == 0 {
				return nil, errOnPurpose
			}
			return &i, nil
		}, core.Options{MaxConcurrency: 4, MaxTracked: 20, MaxFailed: 5, EchoCapacity: 5}))
	stops := []func(){beside(func() {
		for s, out := range c.Results(core.OperationQuery{}) {
			coretest.Check(t, out != nil && *out%5 != 0 && s.Key == fmt.Sprint(*out%7), "operation %d of key %q: got %v", s.ID, s.Key, out)
		}
	}), beside(func() {
		for s := range c.Operations(core.OperationQuery{}) {
			c.Evict(s.ID)
			if _, err := c.Wait(t.Context(), s.ID); err != nil && !errors.Is(err, core.ErrUnknown) && err != errOnPurpose {
				t.Errorf("Wait: %v", err)
			}
		}
	})}
	var writers sync.WaitGroup
	n := stressed(20_000)
	for w := range 4 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(4, uint64(w)))
			for i := range n {
				var got *int
				var err error
				switch i += w * n; random.IntN(3) {
				case 0:
					got, err = c.Do(t.Context(), i)
				case 1:
					f := core.Must(c.Submit(t.Context(), i))
					spin(random)
					got, err = f.Wait(t.Context())
				case 2:
					if got, err = c.Wait(t.Context(), core.Must(c.Enqueue(t.Context(), i))); errors.Is(err, core.ErrUnknown) {
						continue // evicted
					}
				}
				switch {
				case i%5 == 0:
					checkError(t, "its error", err, errOnPurpose)
				case err != nil || got == nil || *got != i:
					t.Errorf("item %d: got %v and error %v", i, got, err)
				}
			}
		})
	}
	writers.Wait()
	for _, stop := range stops {
		stop()
	}
	checkError(t, "Drain", c.Drain(t.Context()), nil)
	checkError(t, "the books", coretest.CheckBooks(c.Stats()), nil)
	if got := slices.Collect(c.Operations(core.OperationQuery{})); len(got) > 25 {
		t.Errorf("%d operations in the window, want at most 20 and 5 that failed", len(got))
	}
}

// The error for an id that has left the window says how small the window is and what to do. An id that was never
// given out has another text.
func TestUnknownOperationSaysWhy(t *testing.T) {
	for _, test := range []struct {
		opts core.Options
		want string
	}{
		{core.Options{MaxFailed: -1}, "MaxTracked 200, MaxAge 5m"},
		{core.Options{MaxTracked: -1, MaxAge: -1}, "MaxTracked none, MaxAge no limit"},
		{core.Options{MaxTracked: 7, MaxAge: time.Hour}, "MaxTracked 7, MaxAge 1h"},
		{core.Options{MaxTracked: 7, MaxAge: 3630 * time.Second}, "MaxTracked 7, MaxAge 1h0m30s"},
		{core.Options{MaxTracked: 7, MaxAge: 10 * time.Second}, "MaxTracked 7, MaxAge 10s"},
	} {
		bubble(t, func(t *testing.T) {
			test.opts.Name = "orders"
			c := bodies(t, test.opts)
			f, err := c.Submit(t.Context(), quick)
			checkError(t, "Submit", err, nil)
			f.Wait(t.Context())
			c.Evict(f.ID())
			results := answers(t, test.opts)
			r, err := results.Submit(t.Context(), answering("r"))
			checkError(t, "Submit", err, nil)
			r.Wait(t.Context())
			results.Evict(r.ID())
			_, gone := results.Wait(t.Context(), r.ID())
			for id, err := range map[core.OperationID]error{f.ID(): c.Wait(t.Context(), f.ID()), r.ID(): gone} {
				checkError(t, "evicted", err, core.ErrUnknown)
				checkEqual(t, "text", errorText(err), fmt.Sprintf(`core: operation %d is not in the window of "orders" (%s): keep a Future or use a Group`, id, test.want))
			}
			for _, id := range []core.OperationID{0, 1 << 60} {
				err := c.Wait(t.Context(), id)
				checkError(t, "never", err, core.ErrUnknown)
				checkEqual(t, "text", errorText(err), fmt.Sprintf(`core: operation %d was never given out by "orders"`, id))
			}
		})
	}
}

// Submit goes the way of Enqueue: lanes, classes, keys and gates apply to it.
func TestSubmitInViews(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := keyedBodies(t, core.Options{Lanes: lanes(t, "hot, normal"), Classes: []core.Class{{Name: "mail"}}, MaxTracked: -1, CancelOn: "stop"})
		c.Pause()
		f := core.Must(c.Class("mail").Lane("hot").Submit(t.Context(), keyedBody{"k", quick}))
		got := lookup(t, c, f.ID())
		checkEqual(t, "Lane, Class, Key", words(got.Lane, got.Class, got.Key), "hot mail k")
		for view, want := range map[*core.Coordinator[keyedBody]]error{c.Lane("cold"): core.ErrUnknownLane, c.Class("cold"): core.ErrUnknownClass} {
			if f, err := view.Submit(t.Context(), keyedBody{"k", quick}); f != nil || !errors.Is(err, want) {
				t.Errorf("got %v, %v, want %v", f, err, want)
			}
		}
		c.Sink().Raise("stop")
		late, err := c.Submit(t.Context(), keyedBody{"k", quick})
		coretest.Check(t, late == nil, "got a Future of what was not accepted")
		checkRefusal(t, err, "stop")
		c.Resume()
		_, err = f.Wait(t.Context())
		checkRefusal(t, err, "stop")
		checkEqual(t, "rejected", c.Stats().Rejected, 3)
	})
}

// A body that waits for a Future of its own coordinator is suspended, also if the window keeps nothing. Close ends
// the wait of others.
func TestSubmitInsideABodyAndClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: -1, MaxTracked: -1})
		outer, err := c.Submit(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			inner, err := c.Submit(ctx, func(context.Context) error { return errOnPurpose })
			checkError(t, "Submit inside", err, nil)
			_, err = inner.Wait(context.Background()) // the body is the goroutine belongs to the body
			checkError(t, "with another context", err, core.ErrWouldDeadlock)
			_, err = inner.Wait(ctx)
			checkError(t, "the child's error", err, errOnPurpose)
			again, err := c.Submit(ctx, quick)
			checkError(t, "Submit inside", err, nil)
			return op.Suspend(ctx, "its child", func(ctx context.Context) error {
				_, err := again.Wait(ctx)
				return err
			})
		})
		checkError(t, "Submit", err, nil)
		_, err = outer.Wait(t.Context())
		checkError(t, "Wait", err, nil)

		var self *core.Future[struct{}]
		made := newGate()
		self, err = c.Submit(t.Context(), func(ctx context.Context) error {
			made.body(ctx)
			_, err := self.Wait(ctx)
			return err
		})
		checkError(t, "Submit", err, nil)
		made.open()
		_, err = self.Wait(t.Context())
		checkError(t, "waits for itself", err, core.ErrWouldDeadlock)

		c = bodies(t, core.Options{MaxConcurrency: 1, MaxTracked: -1})
		var ends [2]error
		for i, body := range []func(context.Context) error{untilCancelled, quick} {
			f, err := c.Submit(t.Context(), body)
			checkError(t, "Submit", err, nil)
			go func() { _, ends[i] = f.Wait(t.Context()) }()
		}
		synctest.Wait()
		checkError(t, "Close", c.Close(), nil)
		synctest.Wait()
		checkError(t, "running at Close", ends[0], core.ErrClosed)
		checkError(t, "pending at Close", ends[1], core.ErrClosed)
		f, err := c.Submit(t.Context(), quick)
		checkError(t, "after Close", err, core.ErrClosed)
		checkEqual(t, "its Future", f, nil)
	})
}
