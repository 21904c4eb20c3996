package molecules_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestLifecycle(t *testing.T) {
	body := signals.NewKind[coretest.Body]("coretest.body")
	for name, opts := range map[string]molecules.Options{
		"none":    {},
		"per key": {Order: molecules.OrderPerKey},
		"serial":  {Order: molecules.OrderSerial},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				sink := newSink()
				r := newRunner(sink, opts, molecules.Blueprint{Name: "m", On: "coretest.body", Steps: []molecules.Step{
					{Name: "first", Do: quick, Compensate: quick},
					{Name: "body", Do: func(ctx context.Context, r *molecules.Run) error {
						run, _ := body.From(r.Trigger)
						return run(ctx)
					}},
					{Name: "never", Await: "never", AwaitTimeout: 1},
				}})
				return coretest.Subject{
					Lifecycle: r,
					Submit:    submit(body, sink, r.Stats),
					Sink:      sink,
					Stats:     r.Stats,
					WaitIdle:  r.WaitIdle,
					Pause:     r.Pause, Resume: r.Resume,
				}
			})
		})
	}
}

func TestStepsAreDoneInOrderAndShareTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		facts := coretest.Watch(t, sink, "molecule.*, paid, parcel")
		parcel := signals.NewKind[int]("parcel")
		r := newRunner(sink, molecules.Options{Name: "shop"}, molecules.Blueprint{
			Name: "order", On: "order.*",
			Steps: []molecules.Step{
				{Name: "pay", Do: func(ctx context.Context, r *molecules.Run) error {
					time.Sleep(time.Second)
					r.Set("price", 7)
					assert.True(t, r.Raise("paid"))
					assert.Equal(t, "order", r.Blueprint())
					assert.Equal(t, core.OperationFrom(ctx).ID(), r.ID())
					_, awaited := r.Awaited()
					assert.False(t, awaited)
					return nil
				}},
				{Name: "ship", Do: func(_ context.Context, r *molecules.Run) error {
					price, ok := molecules.Value[int](r, "price")
					assert.True(t, ok)
					_, ok = molecules.Value[string](r, "price")
					assert.False(t, ok, "another type")
					parcel.Raise(r.Raiser(), "p", price)
					assert.PanicsWithValue(t, `molecules: Set of "molecule", which is the runner's own`, func() { r.Set("molecule", 1) })
					return nil
				}},
			},
		})
		begun := time.Now()
		sink.RaiseKey("order.placed", "order-42")
		assert.Equal(t, begun, time.Now(), "Raise does not wait")
		require.NoError(t, r.Flush(t.Context()))

		raised := facts.ExpectExactly(
			molecules.SignalStarted,
			molecules.SignalStepStarted, "paid", molecules.SignalStepCompleted,
			molecules.SignalStepStarted, "parcel", molecules.SignalStepCompleted,
			molecules.SignalCompleted)
		id := raised[0].Operation
		for _, s := range raised {
			assert.Equal(t, id, s.Operation)
			assert.Equal(t, "shop", s.Source)
			assert.Equal(t, []string{"order.placed", s.Name}, s.Path())
			if s.Name != "parcel" {
				assert.Equal(t, "order-42", s.Key)
			}
		}
		assert.Equal(t, molecules.Event{Blueprint: "order", Run: id, Step: "ship"}, event(raised[4]))
		assert.Equal(t, molecules.Event{Blueprint: "order", Run: id}, event(raised[7]))
		assert.Equal(t, "p", raised[5].Key)

		op, ok := r.Lookup(id)
		require.True(t, ok)
		assert.Equal(t, "order-42", op.Key)
		assert.Equal(t, core.StatusSucceeded, op.Status)
		price, _ := core.Value[int](op, "price")
		assert.Equal(t, 7, price, "others see the values too")
		state := op.Values["molecule"]
		assert.Equal(t, "{Blueprint:order Step:ship Awaiting: Compensating:false}", fmt.Sprintf("%+v", state))
	})
}

func TestASignalStartsAllMatchingBlueprintsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		note := func(_ context.Context, r *molecules.Run) error {
			j.add("%s:%s:%s", r.Blueprint(), r.Trigger.Name, r.Trigger.Key)
			return nil
		}
		given := []molecules.Blueprint{
			{Name: "b", On: "x.*", Steps: steps(note)},
			{Name: "a", On: "y, x.1", Steps: steps(note), When: func(s signals.Signal) bool { return s.Key != "no" }},
		}
		r := newRunner(sink, molecules.Options{Order: molecules.OrderSerial}, given...)
		given[0].On, given[1].Steps[0].Do = "never", fail // the runner has copies
		sink.RaiseKey("x.1", "k")
		sink.RaiseKey("x.2", "l")
		sink.RaiseKey("y", "no")
		sink.RaiseKey("y", "m")
		sink.RaiseKey("z", "n")
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, []string{"b:x.1:k", "a:x.1:k", "b:x.2:l", "a:y:m"}, j.take())
	})
}

// The orders of a Runner and of a Trigger. SetMaxConcurrency does not change them.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		opts   molecules.Options
		resize int
		want   string
	}{
		{molecules.Options{}, 16, "+a1 +a2 +b1 -a1 -a2 -b1"},
		{molecules.Options{Order: molecules.OrderPerKey}, 16, "+a1 +b1 -a1 +a2 -b1 -a2"},
		{molecules.Options{Order: molecules.OrderSerial}, 8, "+a1 -a1 +a2 -a2 +b1 -b1"},
		{molecules.Options{MaxConcurrency: 1}, 1, "+a1 -a1 +b1 -b1 +a2 -a2"},
	} {
		for _, trigger := range []bool{false, true} {
			bubble(t, fmt.Sprint(c.opts.Order, c.resize, trigger), func(t *testing.T) {
				sink := newSink()
				var j journal
				body := func(_ context.Context, s signals.Signal) error {
					n, _ := s.Arg()
					j.add("+%s%s", s.Key, n)
					time.Sleep(time.Second)
					j.add("-%s%s", s.Key, n)
					return nil
				}
				var subject interface {
					core.Lifecycle
					SetMaxConcurrency(int) error
				}
				if trigger {
					opts := molecules.TriggerOptions{Order: c.opts.Order, MaxConcurrency: c.opts.MaxConcurrency}
					subject = core.Must(molecules.NewTrigger(sink, "go:*", body, opts))
				} else {
					step := func(ctx context.Context, r *molecules.Run) error { return body(ctx, r.Trigger) }
					subject = newRunner(sink, c.opts, molecules.Blueprint{Name: "m", On: "go:*", Steps: steps(step)})
				}
				require.NoError(t, subject.SetMaxConcurrency(c.resize))
				for _, s := range []string{"a1", "a2", "b1"} {
					sink.RaiseKey("go:"+s[1:], s[:1])
					synctest.Wait()
					time.Sleep(time.Nanosecond)
				}
				require.NoError(t, subject.Drain(t.Context()))
				assert.Equal(t, c.want, strings.Join(j.take(), " "))
			})
		}
	}
}

// Finished runs take no memory.
func TestFinishedRunsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		r := newRunner(sink, molecules.Options{}, molecules.Blueprint{
			Name: "m", On: "go", Steps: []molecules.Step{{Name: "only awaits", Await: "go2"}},
		})
		for i := range 300 {
			sink.RaiseKey("go", fmt.Sprint(i))
			synctest.Wait()
			assert.Equal(t, 1, r.Stats().Running)
			sink.RaiseKey("go2", fmt.Sprint(i))
			require.NoError(t, r.Flush(t.Context()))
		}
		assert.Equal(t, 200, r.Stats().Tracked)
		assert.Zero(t, molecules.Awaiting(r))
		assert.Equal(t, uint64(300), r.Stats().Succeeded)
		require.NoError(t, r.Close())
	})
}

// A burst of triggers starts MaxConcurrency runs, queues MaxQueued and drops the rest.
func TestABurstOfTriggersIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		dropped := coretest.Watch(t, sink, molecules.SignalDropped)
		waits := []molecules.Step{{Name: "waits", Await: "never"}}
		r := newRunner(sink, molecules.Options{MaxConcurrency: 2, MaxQueued: 3}, molecules.Blueprint{Name: "m", On: "go", Steps: waits})
		for i := range 7 {
			sink.RaiseKey("go", fmt.Sprint(i))
			synctest.Wait()
		}
		s := r.Stats()
		assert.Equal(t, []int{2, 3, 2, 5}, []int{s.Running, s.Pending, int(s.Rejected), molecules.Awaiting(r)})
		raised := dropped.ExpectExactly(molecules.SignalDropped, molecules.SignalDropped)
		assert.Equal(t, "5", raised[0].Key)
		assert.Equal(t, []string{"go", molecules.SignalDropped}, raised[0].Path())
		first := event(raised[0])
		assert.ErrorIs(t, first.Err, core.ErrFull)
		first.Err = nil
		assert.Equal(t, molecules.Event{Blueprint: "m"}, first)
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, uint64(5), r.Stats().Failed)
	})
}

// A step that raises its own trigger does not loop for ever.
func TestAStepThatRaisesItsOwnTriggerComesToAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		propagation signals.Propagation
		runs        uint64
	}{
		"it is its own cause": {signals.Propagation{}, 1},
		"cycles allowed":      {signals.Propagation{AllowCycles: true}, 11},
	} {
		bubble(t, name, func(t *testing.T) {
			sink := signals.NewSink(signals.SinkOptions{Propagation: c.propagation})
			again := func(_ context.Context, r *molecules.Run) error { r.Raise("go"); return nil }
			r := newRunner(sink, molecules.Options{}, blueprint(again))
			sink.Raise("go")
			synctest.Wait()
			assert.Equal(t, c.runs, r.Stats().Succeeded)
			assert.NotZero(t, sink.Stats().Blocked)
			require.NoError(t, r.Close())
		})
	}
}

// The pattern "*" causes no endless loop: signals about runs start nothing, and signals that the
// operations of runs raise without a cause start nothing.
func TestAPatternThatMatchesEverythingComesToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		sink.Subscribe("operation.*", func(signals.Signal) {}) // makes operations raise these
		noisy := func(ctx context.Context, _ *molecules.Run) error {
			core.OperationFrom(ctx).Raise("noise")
			panic("on purpose")
		}
		all := func(name string, do do) molecules.Blueprint {
			return molecules.Blueprint{Name: name, On: "*", Steps: steps(do)}
		}
		one := newRunner(sink, molecules.Options{}, all("a", noisy), all("b", quick))
		sink.Raise("go")
		synctest.Wait()
		assert.Equal(t, uint64(4), one.Stats().Enqueued, "go starts a and b; the panic of a is caused by go, and starts both")
		require.NoError(t, one.Drain(t.Context()))

		one = newRunner(sink, molecules.Options{}, all("a", quick), all("b", fail))
		two := newRunner(sink, molecules.Options{MaxConcurrency: 1, MaxQueued: 1, Name: "two"}, all("c", quick))
		trigger := core.Must(molecules.NewTrigger(sink, "*", func(context.Context, signals.Signal) error { return errOnPurpose }, molecules.TriggerOptions{}))
		sink.Raise("go")
		synctest.Wait()
		assert.Less(t, one.Stats().Enqueued, uint64(100))
		assert.NotZero(t, trigger.Stats().Failed)
		for _, l := range []core.Lifecycle{one, two, trigger} {
			require.NoError(t, l.Drain(t.Context()))
		}
	})
}

// A handler that panics affects no run. A When that panics affects only the run that it decides
// about: that run is dropped.
func TestPanicsInHandlersAndConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		facts := coretest.Watch(t, sink, terminal+","+molecules.SignalDropped)
		sink.Subscribe(molecules.SignalStarted, func(signals.Signal) { panic("on purpose") })
		sink.Subscribe(molecules.SignalCompleted, func(signals.Signal) { panic("on purpose") })
		bad, good := blueprint(quick), blueprint(quick)
		bad.Name, bad.When = "bad", func(signals.Signal) bool { panic("on purpose") }
		r := newRunner(sink, molecules.Options{}, bad, good)
		sink.RaiseKey("go", "k")
		require.NoError(t, r.Drain(t.Context()))
		raised := facts.ExpectExactly(molecules.SignalDropped, molecules.SignalCompleted)
		assert.Equal(t, "bad", event(raised[0]).Blueprint)
		assert.ErrorContains(t, event(raised[0]).Err, "When panicked")
		assert.Equal(t, uint64(3), sink.Stats().Panics)
	})
}

// A cancelled run does not count as failed. A run that was cancelled before it began is signalled
// too.
func TestCancelledRuns(t *testing.T) {
	for name, cancel := range map[string]func(*molecules.Runner, core.OperationID){
		"Cancel": func(r *molecules.Runner, id core.OperationID) { r.Cancel(id, errOnPurpose) },
		"Abort":  func(r *molecules.Runner, _ core.OperationID) { r.Abort(errOnPurpose) },
	} {
		bubble(t, name, func(t *testing.T) {
			sink := newSink()
			facts := coretest.Watch(t, sink, terminal)
			r := newRunner(sink, molecules.Options{MaxConcurrency: 1}, blueprint(takes(time.Hour), quick))
			sink.RaiseKey("go", "runs")
			sink.RaiseKey("go", "waits")
			synctest.Wait()
			ids := make(map[string]core.OperationID)
			for op := range r.Operations(core.OperationQuery{}) {
				ids[op.Key] = op.ID
			}
			cancel(r, ids["waits"])
			cancel(r, ids["runs"])
			synctest.Wait()
			for _, s := range facts.ExpectExactly(molecules.SignalCancelled, molecules.SignalCancelled) {
				assert.Equal(t, ids[s.Key], event(s).Run)
				assert.ErrorIs(t, event(s).Err, errOnPurpose)
			}
			assert.Equal(t, uint64(2), r.Stats().Cancelled)
			require.NoError(t, r.Close())
		})
	}
}

// When can close the runner.
func TestCloseFromInsideWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var r *molecules.Runner
		b := blueprint(quick)
		b.When = func(signals.Signal) bool { return assert.NoError(t, r.Close()) }
		r = newRunner(sink, molecules.Options{}, b)
		sink.Raise("go")
		assert.Equal(t, core.Stats{Limit: 16, Closed: true, Rejected: 1}, r.Stats())
	})
}

// Each run ends exactly once while many goroutines start and cancel runs and one closes.
func TestEachRunEndsExactlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 10})
		ends := make(map[core.OperationID]int)
		var mu sync.Mutex
		sink.Subscribe(terminal, func(s signals.Signal) {
			mu.Lock()
			defer mu.Unlock()
			ends[event(s).Run]++
		})
		r := newRunner(sink, molecules.Options{MaxConcurrency: 4}, blueprint(takes(time.Microsecond), quick))
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 50 {
					sink.Raise("go")
					for op := range r.Operations(core.OperationQuery{Status: core.StatusAlive}) {
						r.Cancel(op.ID, nil)
						break
					}
					time.Sleep(time.Nanosecond)
				}
			})
		}
		time.Sleep(30 * time.Nanosecond)
		r.Close()
		all.Wait()
		s := r.Stats()
		require.NoError(t, coretest.CheckBooks(s))
		assert.Len(t, ends, int(s.Enqueued))
		for id, n := range ends {
			assert.Equal(t, 1, n, "run %v", id)
		}
	})
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	sink := newSink()
	one := molecules.Step{Name: "one", Do: quick}
	with := func(steps ...molecules.Step) []molecules.Blueprint {
		return []molecules.Blueprint{{Name: "m", On: "go", Steps: steps}}
	}
	valid := with(one)
	for want, c := range map[string]struct {
		blueprints []molecules.Blueprint
		opts       molecules.Options
	}{
		"at least one blueprint":                                     {},
		`the name of blueprint 1 is "", it must not be blank`:        {blueprints: []molecules.Blueprint{{On: "go", Steps: steps(quick)}}},
		`two of the blueprints have the name "m"`:                    {blueprints: slices.Concat(valid, valid)},
		`"m": its On is " ,\r", which no signal matches`:             {blueprints: []molecules.Blueprint{{Name: "m", On: " ,\r", Steps: steps(quick)}}},
		`"m": it needs at least one step`:                            {blueprints: with()},
		`"m": the name of step 2 is "\u00a0", it must not be blank`:  {blueprints: with(one, molecules.Step{Name: "\u00a0", Do: quick})},
		`"m": two of the steps have the name "one"`:                  {blueprints: with(one, one)},
		`"m": step "x": it needs a function Do or a signal to Await`: {blueprints: with(molecules.Step{Name: "x"})},
		`step "x": its AwaitTimeout is 1s, which needs a signal`:     {blueprints: with(molecules.Step{Name: "x", Do: quick, AwaitTimeout: time.Second})},
		`step "x": its Timeout is 1s, which needs a function`:        {blueprints: with(molecules.Step{Name: "x", Await: "y", Timeout: time.Second})},
		`step "x": its Await is ",", which no signal matches`:        {blueprints: with(molecules.Step{Name: "x", Await: ","})},
		`Options.Name is " ", it must not be blank`:                  {blueprints: valid, opts: molecules.Options{Name: " "}},
		`Options.Order of "r" is Order(3)`:                           {blueprints: valid, opts: molecules.Options{Name: "r", Order: 3}},
		`Options.MaxConcurrency of "molecules" is -1, it must`:       {blueprints: valid, opts: molecules.Options{MaxConcurrency: -1}},
		"is 2, with OrderSerial it must be 1":                        {blueprints: valid, opts: molecules.Options{Order: molecules.OrderSerial, MaxConcurrency: 2}},
	} {
		r, err := molecules.New(sink, c.blueprints, c.opts)
		assert.Nil(t, r)
		assert.ErrorContains(t, err, "molecules: ")
		assert.ErrorContains(t, err, want)
	}
	_, err := molecules.New(nil, valid, molecules.Options{})
	assert.ErrorContains(t, err, "molecules: the sink of a runner is nil")

	r := newRunner(sink, molecules.Options{}, valid...)
	assert.Equal(t, "molecules", r.Name())
	assert.Same(t, sink, r.Sink())
	assert.Equal(t, 16, r.Stats().Limit)
	require.NoError(t, r.Close())
}

// The function of a step can be called without a runner.
func TestARunMadeByHand(t *testing.T) {
	r := &molecules.Run{Trigger: signals.Signal{Name: "go", Key: "k"}}
	r.Set("a", 1)
	a, ok := molecules.Value[int](r, "a")
	assert.True(t, ok)
	assert.Equal(t, 1, a)
	assert.False(t, r.Raise("x"))
	assert.Zero(t, r.ID())
	assert.Empty(t, r.Blueprint())
}

var errOnPurpose = errors.New("failed on purpose")

// terminal matches the signals with which runs end.
const terminal = molecules.SignalCompleted + "," + molecules.SignalFailed + "," + molecules.SignalCancelled

type do = func(context.Context, *molecules.Run) error

func quick(context.Context, *molecules.Run) error { return nil }

func fail(context.Context, *molecules.Run) error { return errOnPurpose }

// takes returns a function that runs for d, or until it is cancelled.
func takes(d time.Duration) do {
	return func(ctx context.Context, _ *molecules.Run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// journal is a list of events, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines, j.lines = j.lines, nil
	return lines
}

// notes returns the function of a step, which adds what to the journal and returns err.
func (j *journal) notes(what string, err error) do {
	return func(context.Context, *molecules.Run) error { j.add("%s", what); return err }
}

// bubble runs a subtest in a synctest bubble.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func newSink() *signals.Sink { return signals.NewSink(signals.SinkOptions{}) }

func newRunner(sink *signals.Sink, opts molecules.Options, blueprints ...molecules.Blueprint) *molecules.Runner {
	return core.Must(molecules.New(sink, blueprints, opts))
}

func steps(do ...do) (steps []molecules.Step) {
	for i, do := range do {
		steps = append(steps, molecules.Step{Name: fmt.Sprint("step", i), Do: do})
	}
	return steps
}

func blueprint(do ...do) molecules.Blueprint {
	return molecules.Blueprint{Name: "m", On: "go", Steps: steps(do...)}
}

// event returns the payload of a signal of a runner.
func event(s signals.Signal) molecules.Event { return s.Payload().(molecules.Event) }

// submit returns a function that raises a body as the payload of a signal, with a new key each time.
// If the signal starts nothing, the function returns core.ErrClosed.
func submit(body signals.Kind[coretest.Body], sink *signals.Sink, stats func() core.Stats) func(context.Context, coretest.Body) error {
	var (
		turn sync.Mutex
		n    int
	)
	return func(_ context.Context, b coretest.Body) error {
		turn.Lock()
		defer turn.Unlock()
		before := stats().Enqueued
		n++
		body.Raise(sink, fmt.Sprint(n), b)
		if stats().Enqueued == before {
			return core.ErrClosed
		}
		return nil
	}
}

func TestTriggerLifecycle(t *testing.T) {
	body := signals.NewKind[coretest.Body]("coretest.body")
	for _, order := range []molecules.Order{molecules.OrderNone, molecules.OrderPerKey, molecules.OrderSerial} {
		t.Run(order.String(), func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				sink := newSink()
				trigger := core.Must(molecules.NewTrigger(sink, "coretest.body", func(ctx context.Context, s signals.Signal) error {
					run, _ := body.From(s)
					return run(ctx)
				}, molecules.TriggerOptions{Order: order}))
				return coretest.Subject{
					Lifecycle: trigger,
					Submit:    submit(body, sink, trigger.Stats),
					Sink:      sink,
					Stats:     trigger.Stats,
					WaitIdle:  trigger.WaitIdle,
				}
			})
		})
	}
}

func TestTriggerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		facts := coretest.Watch(t, sink, "trigger.*")
		trigger := core.Must(molecules.NewTrigger(sink, "go", func(context.Context, signals.Signal) error { time.Sleep(time.Minute); return nil },
			molecules.TriggerOptions{Name: "mail", MaxConcurrency: 2, MaxQueued: 3}))
		for i := range 7 {
			sink.RaiseKey("go", fmt.Sprint(i))
			synctest.Wait()
		}
		s := trigger.Stats()
		assert.Equal(t, []int{2, 3, 2}, []int{s.Running, s.Pending, int(s.Rejected)})
		raised := facts.ExpectExactly(molecules.TriggerDropped.Name(), molecules.TriggerDropped.Name())
		assert.Equal(t, "5", raised[0].Key)
		dropped, _ := molecules.TriggerDropped.From(raised[0])
		assert.Equal(t, "mail", dropped.Trigger)
		assert.ErrorIs(t, dropped.Err, core.ErrFull)
		require.NoError(t, trigger.Close())
		assert.Equal(t, uint64(3), trigger.Stats().Cancelled, "the queued ones; those that ran have returned nil")
	})
}

// A failed call is counted and signalled. A cancelled call does not count as
// failed.
func TestTriggerErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		facts := coretest.Watch(t, sink, "trigger.*, operation.panicked")
		trigger := core.Must(molecules.NewTrigger(sink, "go", func(ctx context.Context, s signals.Signal) error {
			switch s.Key {
			case "error":
				return errOnPurpose
			case "panic":
				panic(errOnPurpose)
			case "exit":
				runtime.Goexit()
			case "close":
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, molecules.TriggerOptions{Order: molecules.OrderSerial}))
		for _, key := range []string{"error", "fine", "panic", "exit"} {
			sink.RaiseKey("go", key)
		}
		require.NoError(t, trigger.Flush(t.Context()))
		raised := facts.ExpectExactly(molecules.TriggerFailed.Name(), core.SignalPanicked, molecules.TriggerFailed.Name(), molecules.TriggerFailed.Name())
		assert.Equal(t, "error", raised[0].Key)
		assert.Equal(t, "trigger", raised[0].Source)
		assert.Equal(t, []string{"go", molecules.TriggerFailed.Name()}, raised[0].Path())
		for _, i := range []int{0, 2} {
			failed, _ := molecules.TriggerFailed.From(raised[i])
			assert.ErrorIs(t, failed.Err, errOnPurpose)
		}

		cancel := sink.Subscribe(molecules.TriggerFailed.Name(), func(signals.Signal) { runtime.Goexit() })
		sink.RaiseKey("go", "error")
		require.NoError(t, trigger.Flush(t.Context()))
		facts.ExpectExactly(molecules.TriggerFailed.Name())
		cancel()

		sink.RaiseKey("go", "close")
		synctest.Wait()
		require.NoError(t, trigger.Close())
		facts.None()
		s := trigger.Stats()
		assert.Equal(t, []uint64{1, 4, 1}, []uint64{s.Succeeded, s.Failed, s.Cancelled})
	})
}

// A trigger reacts neither to the signals about itself nor to signals that its function raises
// through the operation without a cause.
func TestATriggerDoesNotReactToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		sink.Subscribe("operation.*", func(signals.Signal) {}) // makes operations raise these
		trigger := core.Must(molecules.NewTrigger(sink, "*", func(ctx context.Context, s signals.Signal) error {
			core.OperationFrom(ctx).Raise("noise")
			return errOnPurpose
		}, molecules.TriggerOptions{}))
		sink.Raise("go")
		synctest.Wait()
		assert.Equal(t, uint64(1), trigger.Stats().Failed)
		require.NoError(t, trigger.Close())
		sink.Raise("go")
		assert.Zero(t, trigger.Stats().Rejected, "it does not listen any more")
	})
}

func TestNewTriggerSaysWhatIsWrong(t *testing.T) {
	sink := newSink()
	fn := func(context.Context, signals.Signal) error { return nil }
	for want, c := range map[string]struct {
		sink    *signals.Sink
		pattern string
		fn      func(context.Context, signals.Signal) error
		opts    molecules.TriggerOptions
	}{
		"the sink of a trigger is nil":               {nil, "go", fn, molecules.TriggerOptions{}},
		`the pattern of a trigger is " , "`:          {sink, " , ", fn, molecules.TriggerOptions{}},
		`the function of the trigger on "go" is nil`: {sink, "go", nil, molecules.TriggerOptions{}},
		`Options.Name is "\t", it must not be blank`: {sink, "go", fn, molecules.TriggerOptions{Name: "\t"}},
		`Options.Order of "trigger" is Order(-1)`:    {sink, "go", fn, molecules.TriggerOptions{Order: -1}},
	} {
		trigger, err := molecules.NewTrigger(c.sink, c.pattern, c.fn, c.opts)
		assert.Nil(t, trigger)
		assert.ErrorContains(t, err, "molecules: ")
		assert.ErrorContains(t, err, want)
	}
}

// See the example for the parts of a chart.
func TestMermaid(t *testing.T) {
	blueprints := []molecules.Blueprint{
		{Name: "order", On: "a?, b.c", When: func(signals.Signal) bool { return true }, Steps: []molecules.Step{{Name: "pay", Await: "go"}}},
		{Name: `"] end #1; <b> &`, On: "a", Steps: []molecules.Step{{Name: "`x`\ny", Do: quick, Compensate: quick}}},
	}
	first, second := blueprints[0].Mermaid(), blueprints[1].Mermaid()
	assert.Contains(t, first, `m0on -->|"when, go"| m0s0`)
	assert.Contains(t, second, `subgraph m0["#34;#93; end #35;1#59; #60;b#62; #38;"]`)
	assert.Contains(t, second, `m0u0["undo #96;x#96; y"]`)
}

// Mermaid reads labels as Markdown: characters with a meaning in Markdown are escaped.
func TestMermaidLabelsAreNotMarkdown(t *testing.T) {
	for name, want := range map[string]string{
		"a.*, b.*":     "a.#42;, b.#42;",
		"_a_":          "#95;a#95;",
		"1. order":     "#49;. order",
		" - a":         "#45; a",
		"\x00+ a":      "#43; a",
		"send 2. (b)":  "send 2. (b)",
		"http://a?b=c": "http:#47;#47;a?b=c",
	} {
		text := molecules.Blueprint{Name: name, On: name, Steps: []molecules.Step{{Name: name, Await: "go"}}}.Mermaid()
		assert.Contains(t, text, `m0["`+want+`"]`)
		assert.Contains(t, text, `m0on(["`+want+`"])`)
		assert.Contains(t, text, `m0s0["`+want+`"]`)
	}
}

// With any names, each line has one of a few forms, and the text of a label never ends it.
func FuzzMermaid(f *testing.F) {
	f.Add("order", "order.placed", "pay")
	f.Add(`"]`, "|", "#quot;\x00\n\u2028end")
	line := regexp.MustCompile(`^(flowchart TD|    end|    subgraph m0\[L\]|        m0\w+(\[L\]|\(\[L\]\)| (-->|-\.->)(\|L\|)? m0\w+))$`)
	label := regexp.MustCompile(`"[^"\x60<>&|\[\]\n]*"`)
	f.Fuzz(func(t *testing.T, name, on, step string) {
		b := molecules.Blueprint{Name: name, On: on, Steps: []molecules.Step{{Name: step, Await: on, Compensate: quick}, {Name: step}}}
		text := b.Mermaid()
		assert.Len(t, strings.Split(text, "\n"), 16)
		for l := range strings.Lines(text) {
			l = label.ReplaceAllString(strings.TrimSuffix(l, "\n"), "L")
			assert.Regexp(t, line, l)
		}
	})
}
