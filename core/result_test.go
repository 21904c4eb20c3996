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

func answers(t testing.TB, opts core.Options) *core.ResultCoordinator[answer, string] {
	t.Helper()
	c, err := core.NewResultCoordinator(func(ctx context.Context, a answer) (string, error) { return a(ctx) }, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// after is an answer that is given when g is opened.
func (g *gate) after(text string) answer {
	return func(ctx context.Context) (string, error) { return text, g.body(ctx) }
}

func checkResult(t testing.TB, what, got string, err error, want string, wantErr error) {
	t.Helper()
	coretest.Check(t, got == want && errors.Is(err, wantErr), "%s: got %q and error %v, want %q and %v", what, got, err, want, wantErr)
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
	for name, opts := range map[string]core.Options{
		"no window":               {MaxTracked: -1},
		"no window and no echoes": {MaxTracked: -1, EchoCapacity: -1},
		"a small window":          {MaxTracked: 1},
		"a short age":             {MaxAge: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := answers(t, opts)
				var futures []*core.Future[string]
				for i := range 100 {
					answer := answering(fmt.Sprint(i))
					if i%3 == 0 {
						answer = func(context.Context) (string, error) { return fmt.Sprint(i), fmt.Errorf("%d: %w", i, errOnPurpose) }
					}
					futures = append(futures, core.Must(c.Submit(t.Context(), answer)))
				}
				check := func() {
					t.Helper()
					for i, f := range futures {
						<-f.Done()
						got, err := f.Wait(t.Context())
						if want := fmt.Sprint(i, ": ", errOnPurpose); i%3 == 0 {
							checkEqual(t, "error", fmt.Sprint(err), want)
							err = nil
						}
						checkResult(t, "Wait", got, err, fmt.Sprint(i), nil)
					}
				}
				check()
				time.Sleep(time.Hour)
				for _, f := range futures {
					c.Evict(f.ID())
					_, err := c.Wait(t.Context(), f.ID())
					checkError(t, "by id", err, core.ErrUnknown)
				}
				check()
				checkError(t, "Close", c.Close(), nil)
				check()
			})
		})
	}
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
		coretest.Check(t, got == nil && err == nil, "Wait: got %v and error %v, want nil and nil", got, err)
		for s, out := range c.Results(core.OperationQuery{}) {
			coretest.Check(t, s.Status == core.StatusSucceeded && out == nil, "got %v with result %v, want succeeded with nil", s.Status, out)
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
