package echo_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
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

// Kinds that the operations of these tests raise.
var (
	said   = core.NewKind[string]("echo.said")
	number = core.NewKind[int]("echo.number")
)

var (
	_ echo.Source = (*core.Coordinator[int])(nil)
	_ echo.Source = (*core.ResultCoordinator[int, int])(nil)
	_ echo.Source = (*core.Dispatcher)(nil)
	_ echo.Source = (*core.Processor)(nil)
)

// newOrders makes a coordinator that shows that many finished operations.
func newOrders(shown int) *core.Coordinator[coretest.Body] {
	return core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 1, MaxTracked: shown}))
}

// archive keeps entries. Nothing guards it but the promise that by default they are
// delivered one at a time.
type archive struct{ entries []echo.Entry[string] }

func (a *archive) append(_ context.Context, e echo.Entry[string]) error {
	a.entries = append(a.entries, e)
	return nil
}

// words are the payloads, entry by entry.
func (a *archive) words() (words [][]string) {
	for _, e := range a.entries {
		var of []string
		for _, c := range e.Captures {
			of = append(of, c.Payload)
		}
		words = append(words, of)
	}
	return words
}

// say runs an operation that says so.
func say(t testing.TB, c *core.Coordinator[coretest.Body], words ...string) {
	core.Must(c.Enqueue(t.Context(), func(ctx context.Context) error {
		for _, w := range words {
			said.Raise(core.OperationFrom(ctx), "", w)
		}
		return nil
	}))
	synctest.Wait() // until it has pushed out the one before
}

// recorded closes the coordinator and drains the recorder.
func recorded(t *testing.T, c *core.Coordinator[coretest.Body], r *echo.Recorder[string]) {
	c.Close()
	require.NoError(t, r.Drain(t.Context()))
}

func TestLifecycle(t *testing.T) {
	body := core.NewKind[coretest.Body]("body")
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		c := newOrders(0)
		r := core.Must(echo.New(c, body, func(ctx context.Context, e echo.Entry[coretest.Body]) error {
			return e.Captures[0].Payload(ctx)
		}, echo.Options{}))
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
			Sink:     c.Sink(),
			Stats:    r.Stats,
			WaitIdle: r.WaitIdle,
		}
	})
}

// An entry has what the operation itself raised and did not retract, and nothing else.
func TestEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := newOrders(1), new(archive)
		r := core.Must(echo.New(c, said, a.append, echo.Options{}))
		begun := time.Now()
		id := core.Must(c.Enqueue(t.Context(), func(ctx context.Context) error {
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
		}))
		_, ok := c.Pin(id)
		require.True(t, ok)
		time.Sleep(3 * time.Minute)
		say(t, c, "quick")
		say(t, c, "last")
		assert.Equal(t, [][]string{{"quick"}}, a.words(), "the others are in the window")
		recorded(t, c, r)
		assert.Equal(t, [][]string{{"quick"}, {"last"}, {"received", "archived", "scoped"}}, a.words())
		assert.False(t, a.entries[0].Pinned)
		got := a.entries[2]
		for i, signal := range got.Captures {
			assert.Equal(t, []string{"order-1", "parcel-9", "order-1"}[i], signal.Signal.Key)
		}
		assert.True(t, begun.Add(time.Minute).Equal(got.Captures[1].Signal.Time))
		assert.True(t, begun.Add(time.Minute).Equal(got.Finished))
		assert.True(t, begun.Add(3*time.Minute).Equal(got.Finalized))
		got.Captures, got.Finished, got.Finalized = nil, time.Time{}, time.Time{}
		assert.Equal(t, echo.Entry[string]{Operation: id, Key: "order-1", Status: core.StatusFailed, Err: "failed on purpose", Pinned: true}, got)
	})
}

func TestMaxPerOperation(t *testing.T) {
	words := strings.Fields(strings.Repeat("word ", 300))
	for limit, want := range map[int]int{0: 64, -1: 300} {
		synctest.Test(t, func(t *testing.T) {
			c, a := newOrders(0), new(archive)
			r := core.Must(echo.New(c, said, a.append, echo.Options{MaxPerOperation: limit}))
			say(t, c, words...)
			recorded(t, c, r)
			assert.Len(t, a.entries[0].Captures, want)
		})
	}
}

// Every entry that is not delivered is handed out, with the reason, before Close returns.
// The operation's id is the key, whatever key the function sets.
func TestFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, sink := newOrders(1), new(archive), core.NewSink(core.SinkOptions{})
		r := core.Must(echo.New(c, said, func(ctx context.Context, e echo.Entry[string]) error {
			op := core.OperationFrom(ctx)
			assert.Equal(t, e.Operation.String(), op.Key())
			op.SetKey("archive")
			switch e.Captures[0].Payload {
			case "fails":
				return errOnPurpose
			case "panics":
				panic(errOnPurpose)
			case "runs":
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return a.append(ctx, e)
		}, echo.Options{Sink: sink, Name: "archive", MaxQueued: 1}))
		require.Same(t, sink, r.Sink())
		var mu sync.Mutex // Close and the function that runs fail at once
		failures := map[string]error{}
		defer r.Failed().Subscribe(sink, func(s core.Signal, f echo.Failure[string]) {
			assert.Equal(t, echo.SignalFailed, s.Name)
			assert.Equal(t, f.Entry.Operation.String(), s.Key)
			assert.ErrorIs(t, r.Flush(t.Context()), core.ErrWouldDeadlock)
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			failures[f.Entry.Captures[0].Payload] = f.Err
		})()
		for _, w := range []string{"fails", "panics", "arrives", "runs", "dropped", "waits", "in the window"} {
			say(t, c, w)
			time.Sleep(time.Minute)
		}
		require.NoError(t, r.Close())
		c.Close()
		assert.NoError(t, coretest.CheckBooks(r.Stats()))
		assert.Zero(t, r.Stats().Rejected, "it is not subscribed any more")
		assert.Equal(t, [][]string{{"arrives"}}, a.words())
		want := map[string]error{
			"fails": errOnPurpose, "panics": errOnPurpose, "runs": core.ErrClosed, "dropped": core.ErrDropped, "waits": core.ErrClosed,
		}
		assert.Len(t, failures, len(want))
		for w, err := range want {
			assert.ErrorIs(t, failures[w], err, w)
		}
		for s := range sink.Sense(core.Query{Pattern: core.SignalPanicked}) {
			assert.Equal(t, "archive", s.Source)
		}
	})
}

// With a Kind[any] everything is captured, signals without a payload too.
func TestUntyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newOrders(0)
		var got []any
		r := core.Must(echo.New(c, core.NewKind[any]("anything"), func(_ context.Context, e echo.Entry[any]) error {
			for _, c := range e.Captures {
				got = append(got, c.Signal.Name, c.Payload)
			}
			return nil
		}, echo.Options{Capture: "echo.*, plain"}))
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

// What is captured is what a simple reading of the options says.
func TestCaptureLikeTheModel(t *testing.T) {
	rounds := 300
	synctest.Test(t, func(t *testing.T) {
		for seed := range rounds {
			r := rand.New(rand.NewPCG(uint64(seed), 10))
			opts := echo.Options{
				Capture:         []string{"", "echo.*", "*", "oth*, echo.status"}[r.IntN(4)],
				Activate:        []string{"", "open", "echo.*"}[r.IntN(3)],
				SkipActivation:  r.IntN(2) == 0,
				MaxAge:          []time.Duration{0, -1, 5 * time.Second, 5*time.Second - 1}[r.IntN(4)],
				MaxPerOperation: 1 + r.IntN(5),
			}
			if r.IntN(2) == 0 {
				opts.Filter = func(s core.Signal) bool { return s.Payload() != "3" }
			}
			c, a := newOrders(0), new(archive)
			rec := core.Must(echo.New(c, said, a.append, opts))
			var want []string
			require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
				op, active := core.OperationFrom(ctx), opts.Activate == ""
				length := r.IntN(12)
				for i := range length {
					word := strconv.Itoa(i)
					name := []string{"echo.said", "echo.status", "other", "open", "echo.number"}[r.IntN(5)]
					typed := name != "open" && name != "echo.number"
					switch {
					case typed:
						core.NewKind[string](name).Raise(op, "", word)
					case name == "open":
						op.Raise(name)
					default:
						number.Raise(op, "", i)
					}
					opens := !active && core.Match(opts.Activate, name)
					active = active || opens
					pattern := opts.Capture
					if pattern == "" {
						pattern = "echo.said"
					}
					young := opts.MaxAge <= 0 || time.Duration(length-i)*time.Second <= opts.MaxAge
					selected := core.Match(pattern, name) && (opts.Filter == nil || word != "3")
					if active && typed && young && selected && !(opens && opts.SkipActivation) {
						want = append(want, word)
					}
					time.Sleep(time.Second)
				}
				return nil
			}))
			recorded(t, c, rec)
			missed := max(0, len(want)-opts.MaxPerOperation)
			want = want[missed:]
			if len(want) == 0 { // the operation takes no room in the queue
				require.Zero(t, rec.Stats().Enqueued, "seed %d", seed)
				continue
			}
			require.Equal(t, missed, a.entries[0].Missed)
			require.EqualValues(t, missed, rec.Stats().SignalsDropped)
			require.Equal(t, [][]string{want}, a.words(), "seed %d: %+v", seed, opts)
		}
	})
}

// MaxConcurrency entries are delivered at once; by default one.
func TestMaxConcurrency(t *testing.T) {
	for limit, want := range map[int]time.Duration{0: 8 * time.Second, 4: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := newOrders(8)
			r := core.Must(echo.New(c, said, func(context.Context, echo.Entry[string]) error {
				time.Sleep(time.Second)
				return nil
			}, echo.Options{MaxConcurrency: limit}))
			for range 8 {
				say(t, c, "something")
			}
			begun := time.Now()
			recorded(t, c, r)
			assert.Equal(t, want, time.Since(begun))
		})
	}
}

func TestEntryAsJSON(t *testing.T) {
	at := time.Unix(0, 0).UTC()
	got, err := json.Marshal(echo.Entry[int]{
		Operation: 7, Key: "k", Status: core.StatusFailed, Err: "no", Finalized: at,
		Captures: []echo.Capture[int]{{Signal: core.Signal{Name: "a", Time: at, Seq: 1}, Payload: 3}},
	})
	assert.NoError(t, err)
	assert.JSONEq(t, `{"operation":7,"key":"k","status":"failed","error":"no","finalized":"1970-01-01T00:00:00Z",
		"captures":[{"signal":{"name":"a","time":"1970-01-01T00:00:00Z","seq":1},"payload":3}]}`, string(got))
}

func TestOptions(t *testing.T) {
	c, a := newOrders(0), new(archive)
	for _, of := range []struct {
		source  echo.Source
		kind    core.Kind[string]
		deliver core.Work[echo.Entry[string]]
		opts    echo.Options
		want    string
	}{
		{nil, said, a.append, echo.Options{}, "echo: New needs a coordinator, a kind"},
		{c, core.Kind[string]{}, a.append, echo.Options{}, "echo: New needs a coordinator, a kind"},
		{c, said, nil, echo.Options{}, "echo: New needs a coordinator, a kind"},
		{c, said, a.append, echo.Options{MaxConcurrency: -1}, "MaxConcurrency"},
	} {
		_, err := echo.New(of.source, of.kind, of.deliver, of.opts)
		assert.ErrorContains(t, err, "echo: ")
		assert.ErrorContains(t, err, of.want)
	}
	r := core.Must(echo.New(c, said, a.append, echo.Options{}))
	assert.Equal(t, "echo", r.Name())
	assert.Same(t, c.Sink(), r.Sink())
	r.Close()
}
