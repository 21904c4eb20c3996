package echo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/echo"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("failed on purpose")

// said is the kind that the operations of these tests raise.
var said = signals.NewKind[string]("echo.said")

// newOrders makes a coordinator whose window shows at most n finished operations.
func newOrders(shown int) *core.Coordinator[coretest.Body] {
	return core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 1, MaxTracked: shown}))
}

// archive keeps entries. It has no lock, because by default entries are delivered one at a
// time.
type archive[P any] []echo.Entry[P]

func (a *archive[P]) append(_ context.Context, e echo.Entry[P]) error {
	*a = append(*a, e)
	return nil
}

// words returns the payloads, entry by entry.
func (a archive[P]) words() (words [][]P) {
	for _, e := range a {
		var of []P
		for _, c := range e.Captures {
			of = append(of, c.Payload)
		}
		words = append(words, of)
	}
	return words
}

// say runs an operation that raises these words.
func say(t testing.TB, c *core.Coordinator[coretest.Body], word string) core.OperationID {
	id := core.Must(c.Enqueue(t.Context(), func(ctx context.Context) error {
		said.Raise(core.OperationFrom(ctx), "", word)
		return nil
	}))
	synctest.Wait() // until this operation has pushed out the previous one
	return id
}

func TestLifecycle(t *testing.T) {
	body := signals.NewKind[coretest.Body]("body")
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		c := newOrders(0)
		deliver := func(ctx context.Context, e echo.Entry[coretest.Body]) error { return e.Captures[0].Payload(ctx) }
		r := core.Must(echo.New(c, body, deliver, echo.Options{}))
		submit := func(_ context.Context, b coretest.Body) error {
			one, s := signals.NewSink(signals.SinkOptions{}), core.Snapshot{ID: 7}
			body.Raise(one, "", b)
			for signal := range one.Sense(signals.Query{}) {
				s.Signals = append(s.Signals, signal)
			}
			return r.Record(s)
		}
		return coretest.Subject{Lifecycle: r, Submit: submit, Sink: c.Sink(), Stats: r.Stats, WaitIdle: r.WaitIdle}
	})
}

// An entry has exactly the signals that the operation itself raised and did not retract. With
// a Kind[any] these are all signals, even signals without a payload. Operations that are in
// the window when the coordinator is closed have entries.
func TestEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, all := newOrders(1), new(archive[string]), new(archive[any])
		r := core.Must(echo.New(c, said, a.append, echo.Options{}))
		untyped := core.Must(echo.New(c, signals.NewKind[any]("anything"), all.append, echo.Options{Capture: "echo.*, plain"}))
		begun := time.Now()
		id := core.Must(c.Enqueue(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.SetKey("order-1")
			said.Raise(op, "", "received")
			time.Sleep(time.Minute)
			said.Raise(op, "parcel-9", "archived")
			said.Raise(c.Sink(), "order-1", "by somebody else")
			op.Raise("plain")
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
		c.Close()
		require.NoError(t, core.InOrder(r, untyped).Drain(t.Context()))
		assert.Equal(t, [][]string{{"quick"}, {"last"}, {"received", "archived", "scoped"}}, a.words())
		assert.Equal(t, []any{"received", "archived", nil, nil}, all.words()[2])

		got := (*a)[2]
		assert.False(t, (*a)[0].Pinned)
		assert.Equal(t, "parcel-9", got.Captures[1].Signal.Key)
		assert.True(t, begun.Add(time.Minute).Equal(got.Captures[1].Signal.Time))
		assert.True(t, begun.Add(time.Minute).Equal(got.Finished))
		assert.True(t, begun.Add(3*time.Minute).Equal(got.Time))
		got.Finished, got.Time = time.Time{}, time.Unix(0, 0).UTC()
		got.Captures = []echo.Capture[string]{{Signal: signals.Signal{Name: "a", Time: got.Time, Seq: 1}, Payload: "p"}}
		text, err := json.Marshal(got)
		assert.NoError(t, err)
		assert.JSONEq(t, fmt.Sprintf(`{"operation":%d,"key":"order-1","signal":"shop.orders.clerk.echo.said","status":"failed","error":"failed on purpose","pinned":true,
			"time":"1970-01-01T00:00:00Z","captures":[{"signal":{"name":"a","time":"1970-01-01T00:00:00Z","seq":1},"payload":"p"}]}`, id), string(text))
	})
}

// A delivery and its failure have the operation's id as key, whatever key the function sets.
func TestFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sink := newOrders(-1), signals.NewSink(signals.SinkOptions{})
		r := core.Must(echo.New(c, said, func(ctx context.Context, e echo.Entry[string]) error {
			op := core.OperationFrom(ctx)
			assert.Equal(t, []string{e.Operation.String(), "archive"}, []string{op.Key(), op.Source()})
			op.SetKey("archive")
			return errOnPurpose
		}, echo.Options{Sink: sink, Name: "archive", MaxQueued: -1}))
		failures := map[string]error{}
		defer r.Failed().Subscribe(sink, func(s signals.Signal, f lastwords.Failure[echo.Entry[string]]) { failures[s.Key] = f.Err })()
		id := say(t, c, "fails").String()
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, map[string]error{id: errOnPurpose}, failures)
	})
}

// The recorder captures what a simple model of the options says. Faults avoided: captures
// without a bound, and memory for signals that are not captured.
func TestCaptureLikeTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range 300 {
			r := rand.New(rand.NewPCG(uint64(seed), 10))
			opts := echo.Options{
				Capture:         []string{"", "echo.*", "*", "oth*, echo.status"}[r.IntN(4)],
				Activate:        []string{"", "open", "echo.*"}[r.IntN(3)],
				MaxAge:          []time.Duration{0, -1, 5 * time.Second, 5*time.Second - 1}[r.IntN(4)],
				MaxPerOperation: r.IntN(7) - 1,
			}
			c, a := newOrders(0), new(archive[string])
			rec := core.Must(echo.New(c, said, a.append, opts))
			length, want := []int{r.IntN(12), 400}[r.IntN(8)/7], []string(nil)
			require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
				op, active := core.OperationFrom(ctx), opts.Activate == ""
				for i := range length {
					word := strconv.Itoa(i)
					name := []string{"echo.said", "echo.status", "other", "open", "echo.number"}[r.IntN(5)]
					typed := name != "open" && name != "echo.number"
					if typed {
						signals.NewKind[string](name).Raise(op, "", word)
					} else {
						signals.NewKind[int](name).Raise(op, "", i)
					}
					active = active || signals.Match(opts.Activate, name)
					pattern := opts.Capture
					if pattern == "" {
						pattern = "echo.said"
					}
					young := opts.MaxAge <= 0 || time.Duration(length-i)*time.Second <= opts.MaxAge
					selected := signals.Match(pattern, name)
					if active && typed && young && selected {
						want = append(want, word)
					}
					time.Sleep(time.Second)
				}
				return nil
			}))
			c.Close()
			require.NoError(t, rec.Drain(t.Context()))
			limit := map[int]int{0: 64, -1: length}[opts.MaxPerOperation]
			missed := max(0, len(want)-max(limit, opts.MaxPerOperation))
			if len(want) == 0 { // the operation takes no room in the queue
				require.Zero(t, rec.Stats().Enqueued, "seed %d", seed)
				continue
			}
			require.Equal(t, missed, (*a)[0].Missed)
			require.EqualValues(t, missed, rec.Stats().SignalsDropped)
			require.Equal(t, [][]string{want[missed:]}, a.words(), "seed %d: %+v", seed, opts)
		}
	})
}

func TestOptions(t *testing.T) {
	c, a := newOrders(0), new(archive[string])
	for _, of := range []struct {
		source  echo.Source
		kind    signals.Kind[string]
		deliver core.Work[echo.Entry[string]]
		opts    echo.Options
		want    string
	}{
		{nil, said, a.append, echo.Options{}, "echo: New needs a coordinator, a kind"},
		{c, signals.Kind[string]{}, a.append, echo.Options{}, "echo: New needs a coordinator, a kind"},
		{c, said, nil, echo.Options{}, "echo: New needs a coordinator, a kind"},
		{c, said, a.append, echo.Options{MaxConcurrency: -1}, "echo: lastwords: "},
	} {
		_, err := echo.New(of.source, of.kind, of.deliver, of.opts)
		assert.ErrorContains(t, err, of.want)
	}
	for given, want := range map[int]int{0: 1, 4: 4} {
		r := core.Must(echo.New(c, said, a.append, echo.Options{MaxConcurrency: given}))
		assert.Equal(t, want, r.Stats().Limit)
		assert.Equal(t, "echo", r.Name())
		assert.Same(t, c.Sink(), r.Sink())
		r.Close()
	}
}
