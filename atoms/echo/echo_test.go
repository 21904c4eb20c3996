package echo_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/echo"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var errOnPurpose = errors.New("failed on purpose")

// said is what the operations of these tests say.
var said = core.NewKind[string]("echo.said")

var (
	_ echo.Source = (*core.Coordinator[int])(nil)
	_ echo.Source = (*core.ResultCoordinator[int, int])(nil)
	_ echo.Source = (*core.Dispatcher)(nil)
	_ echo.Source = (*core.Processor)(nil)
)

// newOrders makes a coordinator that shows one finished operation: each that finishes
// pushes out the one before.
func newOrders(t testing.TB) *core.Coordinator[coretest.Body] {
	t.Helper()
	c, err := core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 1, MaxTracked: 1})
	require.NoError(t, err)
	return c
}

func newRecorder(t testing.TB, c echo.Source, deliver core.Work[echo.Entry[string]], opts echo.Options) *echo.Recorder[string] {
	t.Helper()
	r, err := echo.New(c, said, deliver, opts)
	require.NoError(t, err)
	return r
}

// failures are what a recorder hands out, by operation: on several goroutines.
type failures struct {
	mu  sync.Mutex
	all map[core.OperationID]echo.Failure[string]
}

func (f *failures) of(r *echo.Recorder[string]) (cancel func()) {
	f.all = map[core.OperationID]echo.Failure[string]{}
	return r.Failed().Subscribe(r.Sink(), func(_ core.Signal, failure echo.Failure[string]) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all[failure.Entry.Operation] = failure
	})
}

// archive keeps entries.
type archive struct {
	mu      sync.Mutex
	entries []echo.Entry[string]
}

func (a *archive) append(_ context.Context, e echo.Entry[string]) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries = append(a.entries, e)
	return nil
}

// words are the payloads, entry by entry.
func (a *archive) words() (words [][]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.entries {
		words = append(words, wordsOf(e))
	}
	return words
}

func wordsOf(e echo.Entry[string]) (words []string) {
	for _, c := range e.Captures {
		words = append(words, c.Payload)
	}
	return words
}

// say runs an operation that says so.
func say(t testing.TB, c *core.Coordinator[coretest.Body], words ...string) {
	t.Helper()
	require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
		for _, w := range words {
			said.Raise(core.OperationFrom(ctx), "", w)
		}
		return nil
	}))
	synctest.Wait() // until it has pushed out the one before
}

// The suite: closed twice, drained twice, closed while draining, closed from the
// function that delivers, and so on.
func TestLifecycle(t *testing.T) {
	body := core.NewKind[coretest.Body]("body")
	for name, opts := range map[string]echo.Options{
		"zero options": {},
		"many at once": {MaxConcurrency: 8},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				c, err := core.NewCoordinator(coretest.Run, core.Options{})
				require.NoError(t, err)
				r, err := echo.New(c, body, func(ctx context.Context, e echo.Entry[coretest.Body]) error {
					return e.Captures[0].Payload(ctx)
				}, opts)
				require.NoError(t, err)
				return coretest.Subject{
					Lifecycle: r,
					Submit: func(_ context.Context, b coretest.Body) error {
						one := core.NewSink(core.SinkOptions{})
						body.Raise(one, "", b)
						s := core.Snapshot{ID: 7}
						for signal := range one.Sense(core.Query{}) {
							s.Signals = append(s.Signals, signal)
						}
						return r.Record(s)
					},
					Sink:  c.Sink(),
					Stats: r.Stats,
				}
			})
		})
	}
}

// Weak point: the documented usage raises under a fresh operation id, so that there is
// no echo, ever.
func TestRaisedInTheOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := newOrders(t), new(archive)
		r := newRecorder(t, c, a.append, echo.Options{})
		id, err := c.Enqueue(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.SetKey("order-1")
			said.Raise(op, "", "received")
			time.Sleep(time.Minute)
			said.Raise(op, "parcel-9", "archived")
			said.Raise(c.Sink(), "order-1", "by somebody else")
			op.Raise("echo.said") // without a payload
			said.Raise(op, "", "a mistake")
			op.Retract(said.Name())
			said.Raise(op.Scoped("shop", "orders", "clerk"), "", "scoped")
			return errOnPurpose
		})
		require.NoError(t, err)
		begun := time.Now()
		synctest.Wait()
		time.Sleep(3 * time.Minute)
		assert.Empty(t, a.words(), "it is in the window")
		c.Close()
		require.NoError(t, r.Drain(t.Context()))
		require.Len(t, a.entries, 1)
		e := a.entries[0]
		assert.Equal(t, id, e.Operation)
		assert.Equal(t, "order-1", e.Key)
		assert.Equal(t, core.StatusFailed, e.Status)
		assert.Equal(t, "failed on purpose", e.Err)
		assert.False(t, e.Pinned)
		assert.True(t, begun.Add(time.Minute).Equal(e.Finished))
		assert.True(t, begun.Add(3*time.Minute).Equal(e.Finalized), "%v", e.Finalized)
		assert.Equal(t, []string{"received", "archived", "scoped"}, wordsOf(e))
		assert.Equal(t, "order-1", e.Captures[0].Signal.Key)
		assert.Equal(t, "parcel-9", e.Captures[1].Signal.Key)
		assert.True(t, begun.Add(time.Minute).Equal(e.Captures[1].Signal.Time))
	})
}

func TestPinnedIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := newOrders(t), new(archive)
		r := newRecorder(t, c, a.append, echo.Options{})
		id, err := c.Enqueue(t.Context(), func(ctx context.Context) error {
			said.Raise(core.OperationFrom(ctx), "", "kept")
			return nil
		})
		require.NoError(t, err)
		_, ok := c.Pin(id)
		require.True(t, ok)
		say(t, c, "one")
		say(t, c, "two")
		c.Close()
		require.NoError(t, r.Drain(t.Context()))
		require.Len(t, a.entries, 3)
		for _, e := range a.entries {
			assert.Equal(t, wordsOf(e)[0] == "kept", e.Pinned)
		}
	})
}

// Weak points: an entry is made for every operation, whether or not anything is
// captured, and never goes; operations that say something have to make room for it.
func TestNothingIsKeptOfOperationsThatSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := newOrders(t), new(archive)
		r := newRecorder(t, c, a.append, echo.Options{MaxOperations: 1})
		say(t, c, "something")
		for range 500 {
			require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
				core.OperationFrom(ctx).Raise("noise")
				return nil
			}))
		}
		c.Close()
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, [][]string{{"something"}}, a.words())
		assert.EqualValues(t, 1, r.Stats().Enqueued)
	})
}

// Weak point: captures of one operation are without bounds.
func TestMaxPerOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[int]int{0: 64, 1: 1, 3: 3, 1000: 300} {
			c, a := newOrders(t), new(archive)
			r := newRecorder(t, c, a.append, echo.Options{MaxPerOperation: limit})
			var words []string
			for i := range 300 {
				words = append(words, strconv.Itoa(i))
			}
			say(t, c, words...)
			c.Close()
			require.NoError(t, r.Drain(t.Context()))
			assert.Equal(t, [][]string{words[300-want:]}, a.words(), "the newest")
			assert.Equal(t, 300-want, a.entries[0].Missed)
			assert.EqualValues(t, 300-want, r.Stats().SignalsDropped)
		}
	})
}

// Weak point: operations that are in the window at shutdown have no echo.
func TestCloseOfTheCoordinatorEchoesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 1})
		require.NoError(t, err)
		a := new(archive)
		r := newRecorder(t, c, func(ctx context.Context, e echo.Entry[string]) error {
			time.Sleep(time.Second)
			return a.append(ctx, e)
		}, echo.Options{})
		defer r.Close()
		var want [][]string
		for i := range 200 {
			w := strconv.Itoa(i)
			say(t, c, w)
			want = append(want, []string{w})
		}
		assert.Empty(t, a.words())
		c.Close()
		require.NoError(t, r.Flush(t.Context()))
		assert.Equal(t, want, a.words(), "in order")
	})
}

// Flush waits for what has left the window so far.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := newOrders(t), new(archive)
		r := newRecorder(t, c, func(ctx context.Context, e echo.Entry[string]) error {
			time.Sleep(time.Second)
			return a.append(ctx, e)
		}, echo.Options{})
		for _, w := range []string{"one", "two", "three"} {
			say(t, c, w)
		}
		require.NoError(t, r.Flush(t.Context()))
		assert.Equal(t, [][]string{{"one"}, {"two"}}, a.words())
		say(t, c, "four")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second-1, errOnPurpose)
		defer cancel()
		assert.ErrorIs(t, r.Flush(ctx), errOnPurpose)
		require.NoError(t, r.Flush(t.Context()))
		assert.Equal(t, [][]string{{"one"}, {"two"}, {"three"}}, a.words())
		c.Close()
		require.NoError(t, r.Drain(t.Context()))
	})
}

// Weak points: what did not fit into the queue, or came too late, is lost without a
// word; the coordinator's workers wait for deliveries, under its lock.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, hung := newOrders(t), new(archive), make(chan struct{})
		r := newRecorder(t, c, func(ctx context.Context, e echo.Entry[string]) error {
			<-hung
			return a.append(ctx, e)
		}, echo.Options{MaxOperations: 3})
		var lost []string
		defer r.Failed().Subscribe(c.Sink(), func(s core.Signal, f echo.Failure[string]) {
			assert.Equal(t, echo.SignalFailed, s.Name)
			assert.Equal(t, f.Entry.Operation.String(), s.Key)
			assert.ErrorIs(t, f.Err, core.ErrDropped)
			c.Lookup(f.Entry.Operation) // no lock is held
			c.Stats()
			lost = append(lost, wordsOf(f.Entry)...)
		})()
		begun := time.Now()
		for i := range 8 {
			say(t, c, strconv.Itoa(i))
		}
		c.Close()
		assert.Zero(t, time.Since(begun), "nobody waits")
		assert.Equal(t, []string{"1", "2", "3", "4"}, lost)
		assert.EqualValues(t, 4, r.Stats().Dropped)
		close(hung)
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, [][]string{{"0"}, {"5"}, {"6"}, {"7"}}, a.words())
		assert.NoError(t, coretest.CheckBooks(r.Stats()))
	})
}

// Weak point: a delivery that fails loses the entry, and is not heard of.
func TestFailedEntriesAreHandedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, sink := newOrders(t), new(archive), core.NewSink(core.SinkOptions{})
		calls := 0
		r := newRecorder(t, c, func(ctx context.Context, e echo.Entry[string]) error {
			switch calls++; calls {
			case 1:
				return errOnPurpose
			case 2:
				panic(errOnPurpose)
			}
			return a.append(ctx, e)
		}, echo.Options{Sink: sink, Name: "archive"})
		var failed failures
		defer failed.of(r)()
		for _, w := range []string{"one", "two", "three"} {
			say(t, c, w)
		}
		c.Close()
		require.NoError(t, r.Drain(t.Context()))
		synctest.Wait()
		require.Len(t, failed.all, 2)
		ids := slices.Sorted(maps.Keys(failed.all))
		one, two := failed.all[ids[0]], failed.all[ids[1]]
		assert.Equal(t, []string{"one"}, wordsOf(one.Entry))
		assert.Equal(t, errOnPurpose, one.Err)
		assert.Equal(t, []string{"two"}, wordsOf(two.Entry))
		var p *core.PanicError
		assert.ErrorAs(t, two.Err, &p)
		assert.ErrorIs(t, two.Err, errOnPurpose)
		assert.Equal(t, [][]string{{"three"}}, a.words())
		assert.Equal(t, 2, sink.Count(echo.SignalFailed))
		assert.False(t, c.Has(echo.SignalFailed))
		for s := range sink.Sense(core.Query{Pattern: core.SignalPanic}) {
			assert.Equal(t, "archive", s.Source)
		}
	})
}

// Trying again is a matter of the function: anything of the form of core.Work wraps.
func TestRetryComposes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		twice := func(work core.Work[echo.Entry[string]]) core.Work[echo.Entry[string]] {
			return func(ctx context.Context, e echo.Entry[string]) error {
				if work(ctx, e) == nil {
					return nil
				}
				return work(ctx, e)
			}
		}
		c, a, calls := newOrders(t), new(archive), 0
		r := newRecorder(t, c, twice(func(ctx context.Context, e echo.Entry[string]) error {
			if calls++; calls == 1 {
				return errOnPurpose
			}
			return a.append(ctx, e)
		}), echo.Options{})
		say(t, c, "one")
		c.Close()
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, [][]string{{"one"}}, a.words())
		assert.Zero(t, r.Stats().Failed)
	})
}

// Close hands out what waits.
func TestCloseHandsOutWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newOrders(t)
		r := newRecorder(t, c, func(ctx context.Context, e echo.Entry[string]) error {
			<-ctx.Done()
			return ctx.Err()
		}, echo.Options{})
		var lost archive
		defer r.Failed().Subscribe(c.Sink(), func(_ core.Signal, f echo.Failure[string]) {
			lost.append(t.Context(), f.Entry)
			if wordsOf(f.Entry)[0] != "0" {
				assert.ErrorIs(t, f.Err, core.ErrClosed)
			}
		})()
		for i := range 5 {
			say(t, c, strconv.Itoa(i))
		}
		require.NoError(t, r.Close())
		assert.ElementsMatch(t, [][]string{{"0"}, {"1"}, {"2"}, {"3"}}, lost.words())
		assert.EqualValues(t, 4, r.Stats().Cancelled)
		say(t, c, "late")
		c.Close()
		assert.Zero(t, r.Stats().Rejected, "the coordinator does not know it any more")
		assert.ErrorIs(t, r.Record(snapshotOf("late")), core.ErrClosed)
		assert.EqualValues(t, 1, r.Stats().Rejected)
	})
}

// snapshotOf is one of an operation that said so.
func snapshotOf(words ...string) (s core.Snapshot) {
	sink := core.NewSink(core.SinkOptions{})
	for _, w := range words {
		said.Raise(sink, "", w)
	}
	for signal := range sink.Sense(core.Query{}) {
		s.Signals = append(s.Signals, signal)
	}
	return s
}

// After Complete, Drain and Close the coordinator does not know of the recorder.
func TestEndsListening(t *testing.T) {
	for name, end := range map[string]func(*echo.Recorder[string]){
		"Complete": func(r *echo.Recorder[string]) { r.Complete() },
		"Drain":    func(r *echo.Recorder[string]) { r.Drain(context.Background()) },
		"Close":    func(r *echo.Recorder[string]) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, a := newOrders(t), new(archive)
				r := newRecorder(t, c, a.append, echo.Options{})
				say(t, c, "one")
				say(t, c, "two")
				end(r)
				say(t, c, "three")
				synctest.Wait()
				assert.Equal(t, [][]string{{"one"}}, a.words())
				assert.Zero(t, r.Stats().Rejected)
				c.Close()
				r.Close()
			})
		})
	}
}

// One recorder may hear of several coordinators.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, all := newOrders(t), newOrders(t), new(archive)
		r := newRecorder(t, a, all.append, echo.Options{})
		b.OnFinalized(func(s core.Snapshot) { r.Record(s) })
		say(t, a, "a")
		say(t, b, "b")
		require.NoError(t, r.Record(core.Snapshot{}))
		a.Close()
		b.Close()
		require.NoError(t, r.Drain(t.Context()))
		assert.ElementsMatch(t, [][]string{{"a"}, {"b"}}, all.words())
	})
}

var (
	status = core.NewKind[string]("echo.status")
	number = core.NewKind[int]("echo.number")
	other  = core.NewKind[string]("other")
)

func TestWhatIsCaptured(t *testing.T) {
	for name, test := range map[string]struct {
		opts echo.Options
		want []string
	}{
		"the kind":             {echo.Options{}, []string{"1", "5", "7"}},
		"a pattern":            {echo.Options{Capture: "echo.*"}, []string{"1", "2", "5", "7"}},
		"several":              {echo.Options{Capture: "echo.status, other"}, []string{"2", "6"}},
		"none":                 {echo.Options{Capture: "echo.number"}, nil},
		"activated":            {echo.Options{Activate: "open"}, []string{"5", "7"}},
		"by one of them":       {echo.Options{Activate: "echo.status", Capture: "echo.*"}, []string{"2", "5", "7"}},
		"which is skipped":     {echo.Options{Activate: "echo.status", Capture: "echo.*", SkipActivation: true}, []string{"5", "7"}},
		"which is the last":    {echo.Options{Activate: "oth*", Capture: "*"}, []string{"6", "7"}},
		"never activated":      {echo.Options{Activate: "shut", Capture: "*"}, nil},
		"filtered":             {echo.Options{Filter: func(s core.Signal) bool { return s.Payload() != "5" }}, []string{"1", "7"}},
		"any age":              {echo.Options{MaxAge: -1, Capture: "*"}, []string{"1", "2", "5", "6", "7"}},
		"young":                {echo.Options{MaxAge: 3 * time.Second, Capture: "*"}, []string{"5", "6", "7"}},
		"younger":              {echo.Options{MaxAge: 3*time.Second - 1, Capture: "*"}, []string{"6", "7"}},
		"the newest":           {echo.Options{MaxPerOperation: 2}, []string{"5", "7"}},
		"filter, then newest":  {echo.Options{MaxPerOperation: 1, Filter: func(s core.Signal) bool { return s.Payload() != "7" }}, []string{"5"}},
		"active, though young": {echo.Options{Activate: "echo.said", MaxAge: time.Second}, []string{"7"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, a := newOrders(t), new(archive)
				r := newRecorder(t, c, a.append, test.opts)
				require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
					op := core.OperationFrom(ctx)
					for _, raise := range []func(){
						func() { said.Raise(op, "", "1") },
						func() { status.Raise(op, "", "2") },
						func() { number.Raise(op, "", 3) },
						func() { op.Raise("open") },
						func() { said.Raise(op, "", "5") },
						func() { other.Raise(op, "", "6") },
						func() { said.Raise(op, "", "7") },
					} {
						raise()
						time.Sleep(time.Second)
					}
					return nil
				}))
				c.Close()
				require.NoError(t, r.Drain(t.Context()))
				if test.want == nil {
					assert.Empty(t, a.words())
					return
				}
				assert.Equal(t, [][]string{test.want}, a.words())
			})
		})
	}
}

// With a Kind[any] everything is captured, plain signals too.
func TestUntyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newOrders(t)
		var got []any
		r, err := echo.New(c, core.NewKind[any]("anything"), func(_ context.Context, e echo.Entry[any]) error {
			for _, c := range e.Captures {
				got = append(got, c.Signal.Name, c.Payload)
			}
			return nil
		}, echo.Options{Capture: "echo.*, plain"})
		require.NoError(t, err)
		require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			said.Raise(op, "", "word")
			number.Raise(op, "", 3)
			op.Raise("plain")
			op.Raise("plainer")
			return nil
		}))
		c.Close()
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, []any{"echo.said", "word", "echo.number", 3, "plain", nil}, got)
	})
}

// What is captured is what a dull reading of the options says.
func TestCaptureLikeTheModel(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	synctest.Test(t, func(t *testing.T) {
		for seed := range rounds {
			r := rand.New(rand.NewPCG(uint64(seed), 10))
			opts := echo.Options{
				Capture:         []string{"", "echo.*", "*", "other"}[r.IntN(4)],
				Activate:        []string{"", "open", "echo.*"}[r.IntN(3)],
				SkipActivation:  r.IntN(2) == 0,
				MaxAge:          []time.Duration{0, 5 * time.Second}[r.IntN(2)],
				MaxPerOperation: 1 + r.IntN(5),
			}
			c, a := newOrders(t), new(archive)
			rec := newRecorder(t, c, a.append, opts)
			var want []string
			require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
				op, active := core.OperationFrom(ctx), opts.Activate == ""
				length := r.IntN(12)
				for i := range length {
					word := strconv.Itoa(i)
					name := []string{"echo.said", "echo.status", "other", "open", "echo.number"}[r.IntN(5)]
					switch name {
					case "open":
						op.Raise(name)
					case "echo.number":
						number.Raise(op, "", i)
					default:
						core.NewKind[string](name).Raise(op, "", word)
					}
					opens := !active && core.Match(opts.Activate, name)
					active = active || opens
					pattern := opts.Capture
					if pattern == "" {
						pattern = "echo.said"
					}
					typed := name != "open" && name != "echo.number"
					young := opts.MaxAge == 0 || length-i <= 5
					if active && typed && young && core.Match(pattern, name) && !(opens && opts.SkipActivation) {
						want = append(want, word)
					}
					time.Sleep(time.Second)
				}
				return nil
			}))
			c.Close()
			require.NoError(t, rec.Drain(t.Context()))
			want = want[max(0, len(want)-opts.MaxPerOperation):]
			if len(want) == 0 {
				require.Empty(t, a.words(), "seed %d", seed)
				continue
			}
			require.Equal(t, [][]string{want}, a.words(), "seed %d: %+v", seed, opts)
		}
	})
}

// A Filter that panics is counted by the coordinator, and harms nobody else.
func TestFilterThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := newOrders(t), new(archive)
		r := newRecorder(t, c, a.append, echo.Options{Filter: func(s core.Signal) bool {
			if s.Payload() == "bad" {
				panic("on purpose")
			}
			return true
		}})
		say(t, c, "good")
		say(t, c, "bad")
		say(t, c, "fine")
		c.Close()
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, [][]string{{"good"}, {"fine"}}, a.words())
		assert.EqualValues(t, 1, c.Stats().Panics)
	})
}

// MaxConcurrency delivers that many at once; 1 is the default.
func TestMaxConcurrency(t *testing.T) {
	for limit, want := range map[int]time.Duration{0: 12 * time.Second, 1: 12 * time.Second, 4: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 1}))
			r := newRecorder(t, c, func(context.Context, echo.Entry[string]) error { time.Sleep(time.Second); return nil },
				echo.Options{MaxConcurrency: limit})
			for range 12 {
				say(t, c, "word")
			}
			begun := time.Now()
			c.Close()
			require.NoError(t, r.Drain(t.Context()))
			assert.Equal(t, want, time.Since(begun))
		})
	}
}

// Many coordinators' workers, evictions and deliveries at once: every entry is
// delivered or handed out, once.
func TestEveryEntryOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 1000
		if testing.Short() {
			n = 200
		}
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 8, MaxTracked: 5}))
		var mu sync.Mutex
		seen := map[string]int{}
		see := func(e echo.Entry[string]) {
			mu.Lock()
			defer mu.Unlock()
			seen[wordsOf(e)[0]]++
		}
		calls := 0
		r := newRecorder(t, c, func(_ context.Context, e echo.Entry[string]) error {
			time.Sleep(2 * time.Millisecond)
			mu.Lock()
			calls++
			fails := calls%3 == 0
			mu.Unlock()
			if fails {
				return errOnPurpose
			}
			see(e)
			return nil
		}, echo.Options{MaxOperations: 10, MaxConcurrency: 3})
		defer r.Failed().Subscribe(c.Sink(), func(_ core.Signal, f echo.Failure[string]) { see(f.Entry) })()
		for i := range n {
			_, err := c.Enqueue(t.Context(), func(ctx context.Context) error {
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				said.Raise(core.OperationFrom(ctx), "", strconv.Itoa(i))
				return nil
			})
			require.NoError(t, err)
		}
		require.NoError(t, c.Drain(t.Context()))
		require.NoError(t, c.Close())
		time.Sleep(2 * time.Millisecond)
		require.NoError(t, r.Close())
		synctest.Wait()
		s := r.Stats()
		assert.NoError(t, coretest.CheckBooks(s))
		assert.EqualValues(t, n, s.Enqueued)
		assert.Positive(t, s.Dropped)
		assert.Positive(t, s.Failed)
		assert.Len(t, seen, n)
		for w, times := range seen {
			assert.Equal(t, 1, times, w)
		}
	})
}

func TestEntryAsJSON(t *testing.T) {
	at := time.Unix(0, 0).UTC()
	got, err := json.Marshal(echo.Entry[int]{
		Operation: 7, Key: "k", Status: core.StatusFailed, Err: "no", Finalized: at,
		Captures: []echo.Capture[int]{{Signal: core.Signal{Name: "a", Time: at, Seq: 1}, Payload: 3}},
	})
	require.NoError(t, err)
	assert.JSONEq(t, `{"operation":7,"key":"k","status":"failed","error":"no","finalized":"1970-01-01T00:00:00Z",
		"captures":[{"signal":{"name":"a","time":"1970-01-01T00:00:00Z","seq":1},"payload":3}]}`, string(got))
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	c, a := newOrders(t), new(archive)
	_, err := echo.New(nil, said, a.append, echo.Options{})
	assert.ErrorContains(t, err, "echo: New needs a coordinator")
	_, err = echo.New(c, core.Kind[string]{}, a.append, echo.Options{})
	assert.ErrorContains(t, err, "echo: New needs a kind")
	_, err = echo.New(c, said, nil, echo.Options{})
	assert.ErrorContains(t, err, "echo: New needs a function")
	for want, opts := range map[string]echo.Options{
		"echo: MaxPerOperation is -1,": {MaxPerOperation: -1},
		"echo: MaxOperations is -1,":   {MaxOperations: -1},
		"echo: MaxConcurrency is -1,":  {MaxConcurrency: -1},
	} {
		_, err := echo.New(c, said, a.append, opts)
		assert.ErrorContains(t, err, want)
	}
	r := newRecorder(t, c, a.append, echo.Options{})
	assert.Equal(t, "echo", r.Name())
	assert.Same(t, c.Sink(), r.Sink())
	r.Close()
}

// What delivering raises is about the operation, whose key may be changed like that of
// any other; a failure is told of all the same.
func TestDeliveringMayChangeTheKeyOfWhatItRaises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newOrders(t)
		r := newRecorder(t, c, func(ctx context.Context, e echo.Entry[string]) error {
			op := core.OperationFrom(ctx)
			assert.Equal(t, e.Operation.String(), op.Key())
			op.SetKey("archive")
			return errOnPurpose
		}, echo.Options{})
		var failed failures
		defer failed.of(r)()
		var spoke []core.OperationID
		for range 3 {
			id, err := c.Enqueue(t.Context(), func(ctx context.Context) error {
				said.Raise(core.OperationFrom(ctx), "", "hello")
				return nil
			})
			require.NoError(t, err)
			spoke = append(spoke, id)
		}
		require.NoError(t, c.Drain(t.Context()))
		require.NoError(t, c.Close())
		require.NoError(t, r.Drain(t.Context()))
		require.NoError(t, r.Close()) // all have come
		assert.Equal(t, spoke, slices.Sorted(maps.Keys(failed.all)))
	})
}
