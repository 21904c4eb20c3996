package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Law 8: what a program can get of other operations has no method that changes anything.
func TestLaw08NoMutationAcrossOperations(t *testing.T) {
	for _, shown := range []any{core.Snapshot{}, signals.Signal{}, core.Echo{}} {
		typ := reflect.TypeOf(shown)
		for i := range typ.NumMethod() {
			name := typ.Method(i).Name
			for _, verb := range []string{"Raise", "Retract", "Set", "Hold", "Cancel"} {
				coretest.Check(t, !strings.HasPrefix(name, verb), "%v.%s could change what it shows", typ, name)
			}
		}
	}
}

// The other laws are in the tests of what they are about: TestSinkModel, TestEngineModel, TestOptionOnSignal.

// Law 10, at random: with handlers and without handlers, a sink and its coordinators show the same after the same
// calls.
func TestLaw10AtRandom(t *testing.T) {
	heard := int64(0)
	seeds := long.Often(120, 8)
	for seed := range uint64(seeds) {
		without := runLawScript(t, seed, nil)
		if again := runLawScript(t, seed, nil); !slices.Equal(again, without) {
			t.Fatalf("seed %d: the script is not the same twice:\n%s", seed, firstDifference(again, without))
		}
		for _, with := range []*lawHandlers{{pattern: "*"}, {pattern: "*, operation.*", lifecycle: true}} {
			base := without
			if with.lifecycle { // these are raised because somebody listens
				base = runLawScript(t, seed, &lawHandlers{lifecycle: true})
			}
			if got := runLawScript(t, seed, with); !slices.Equal(got, base) {
				t.Fatalf("seed %d, handlers of %q:\n%s", seed, with.pattern, firstDifference(got, base))
			}
			heard += with.heard.Load()
		}
	}
	coretest.Check(t, heard >= 50*int64(seeds), "the handlers heard %d signals, too few to tell", heard)
}

func firstDifference(with, without []string) string {
	for i := range min(len(with), len(without)) {
		if with[i] != without[i] {
			return fmt.Sprintf("at %d\n\twith    %s\n\twithout %s\nafter\n\t%s", i, with[i], without[i],
				strings.Join(with[max(0, i-20):i], "\n\t"))
		}
	}
	return fmt.Sprintf("%d steps with, %d without", len(with), len(without))
}

// lawHandlers are attached to everything, if pattern is set.
type lawHandlers struct {
	pattern   string
	lifecycle bool // leave out lifecycle signals, and what depends on their number
	heard     atomic.Int64
}

// attach subscribes observers that do what observers may do: look, fail, come and
// go, and pass on to another sink.
func (h *lawHandlers) attach(s *signals.Sink) {
	hear := func() {
		if h.heard.Add(1)%3 == 0 {
			panic("observer")
		}
	}
	elsewhere := signals.NewSink(signals.SinkOptions{})
	s.Subscribe(h.pattern, func(a signals.Signal) {
		for range s.Sense(signals.Query{Pattern: a.Name}) {
			break
		}
		s.Subscribe(h.pattern, func(signals.Signal) {})()
		s.Monitor("none", 0).Stop()
		s.Stats()
		elsewhere.Raise("noticed")
		hear()
	})
	s.Subscribe("stop, wait", func(signals.Signal) { hear() })
	s.SubscribeRetracted("*", func(signals.Retraction) { hear() })
	s.Forward(elsewhere, h.pattern)
	elsewhere.Forward(signals.NewSink(signals.SinkOptions{}), "*")
	elsewhere.SubscribeRetracted("*", func(signals.Retraction) { hear() })
}

// lawScript is a run of random steps, and what was seen after each. It takes no step
// whose outcome depends on which goroutine is faster, like Resume.
type lawScript struct {
	rand     *rand.Rand
	handlers *lawHandlers
	start    time.Time
	sink     *signals.Sink
	work     *core.Coordinator[int]
	monitors []*signals.Monitor
	firstID  core.OperationID
	seen     []string
}

func runLawScript(t *testing.T, seed uint64, handlers *lawHandlers) (seen []string) {
	synctest.Test(t, func(t *testing.T) {
		l := &lawScript{rand: rand.New(rand.NewPCG(seed, 3)), handlers: handlers, start: time.Now()}
		l.run(t.Context())
		seen = l.seen
	})
	return seen
}

func (l *lawScript) run(ctx context.Context) {
	r := l.rand
	opts := signals.SinkOptions{MaxAge: cmp.Or(time.Duration(r.IntN(3))*50*time.Millisecond, -1)}
	if l.handlers == nil || !l.handlers.lifecycle {
		opts.Capacity = 10 + r.IntN(100)
	}
	l.sink = signals.NewSink(opts)
	work := core.Options{
		Name: "work", Sink: l.sink, MaxConcurrency: 1, MaxQueued: 5, MaxTracked: 1 + r.IntN(5), EchoCapacity: 5,
		CancelOn: "stop", DeferOn: "wait, held.gate", ResumeOn: "resume", MaxDefer: time.Duration(20+r.IntN(50)) * time.Millisecond,
		DropOldest: r.IntN(2) == 0,
	}
	attach := l.handlers != nil && l.handlers.pattern != ""
	if attach {
		l.handlers.attach(l.sink)
		work.OnSignal = func(signals.Signal) { l.handlers.heard.Add(1) }
		work.OnRetract = func(signals.Retraction) { l.handlers.heard.Add(1); panic("observer") }
	}
	l.work = core.Must(core.NewCoordinator(l.body, work))
	if attach {
		l.work.OnFinalized(func(core.Snapshot) { l.handlers.heard.Add(1); panic("observer") })
	}
	l.monitors = []*signals.Monitor{
		l.sink.Monitor("work.*", 10*time.Millisecond), l.sink.Monitor("s.*, held*", 0),
		l.work.Monitor("work.*", 0), l.work.Monitor("work.1", time.Second),
	}
	var releases []func()
	for range 60 {
		names := []string{"s.a", "s.b", "stop", "wait", "resume", "noise"}
		name := names[r.IntN(len(names))]
		switch n := r.IntN(20); {
		case n < 4:
			l.note("raise %s: %v", name, l.sink.RaiseKey(name, fmt.Sprint(n)))
		case n < 5:
			if all := slices.Collect(l.sink.Sense(signals.Query{Pattern: "s.*"})); len(all) > 0 {
				l.note("because: %v", l.sink.Because(all[len(all)-1]).Raise(name))
			}
		case n < 6:
			releases = append(releases, l.sink.Hold([]string{"held.x", "held.gate"}[r.IntN(2)], "", time.Duration(r.IntN(2))*33*time.Millisecond))
		case n < 7 && len(releases) > 0:
			releases[r.IntN(len(releases))]()
		case n < 9:
			l.note("retract %s: %d", name, l.sink.Retract(name))
		case n < 10:
			l.note("forget: %d", l.sink.Forget(signals.Query{Pattern: name}))
		case n < 14:
			id, err := l.work.TryEnqueue(context.Background(), r.IntN(1000))
			if l.firstID == 0 {
				l.firstID = id
			}
			l.note("enqueue: %v %v", l.id(id), err)
		case n < 15 && l.firstID != 0:
			id := l.firstID + core.OperationID(r.IntN(20))
			l.note("cancel %v: %v", l.id(id), l.work.Cancel(id, errors.New("cancelled")))
			synctest.Wait()
			l.note("evict %v: %v", l.id(id-1), l.work.Evict(id-1))
		default:
			time.Sleep(time.Duration(r.IntN(20_000_000)))
		}
		synctest.Wait()
		l.look()
	}
	time.Sleep(time.Second)
	l.look()
	l.work.Close()
	l.look()
	for _, release := range releases {
		release()
	}
	l.look()
}

// body does what its item says.
func (l *lawScript) body(ctx context.Context, item int) error {
	o := core.OperationFrom(ctx)
	r := rand.New(rand.NewPCG(uint64(item), 4))
	o.SetKey(fmt.Sprint("item ", item))
	for range r.IntN(5) {
		switch r.IntN(6) {
		case 0, 1:
			o.Raise(fmt.Sprint("work.", r.IntN(3)))
		case 2:
			o.Hold("held.work", time.Duration(r.IntN(2))*7*time.Millisecond)
		case 3:
			o.RetractMatching("work.*")
		case 4:
			o.Set("value", item)
		case 5:
			select {
			case <-time.After(time.Duration(r.IntN(15_000_000))):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	switch r.IntN(8) {
	case 0:
		return errors.New("failed")
	case 1:
		panic("body")
	}
	return nil
}

func (l *lawScript) note(format string, args ...any) {
	l.seen = append(l.seen, fmt.Sprintf("%v: ", time.Since(l.start))+fmt.Sprintf(format, args...))
}

// id is an operation's id as it would be if it were the first of the process.
func (l *lawScript) id(id core.OperationID) core.OperationID {
	if id == 0 {
		return 0
	}
	return id - l.firstID + 1
}

// look notes all there is to see.
func (l *lawScript) look() {
	lifecycle := l.handlers != nil && l.handlers.lifecycle
	stats := l.sink.Stats()
	stats.Handlers = 0 // differs on purpose
	stats.Panics = 0
	stats.Expired = 0 // counts what somebody notices before it leaves for another reason
	if lifecycle {
		stats = signals.SinkStats{Held: stats.Held, Blocked: stats.Blocked}
	}
	l.note("sink: %+v", stats)
	l.note("sink: %v", l.signals(slices.Collect(l.sink.Sense(signals.Query{}))))
	for _, pattern := range []string{"stop", "work.*", "s.?", "held*", "none"} {
		l.note("%s: %v %d, %v %d", pattern, l.sink.Has(pattern), l.sink.Count(pattern), l.work.Has(pattern), l.work.Count(pattern))
	}
	for i, m := range l.monitors {
		last, ok := m.Last()
		l.note("monitor %d: %d, %v, %s %v", i, m.Count(), m.Below(2), last.Name, ok)
	}
	work := l.work.Stats()
	work.Panics = 0
	l.note("work: %v", work)
	for o := range l.work.Operations(core.OperationQuery{}) {
		l.note("operation %v %q %v, %v to %v to %v, %v, %v, %v", l.id(o.ID), o.Key, o.Status, l.ago(o.Enqueued), l.ago(o.Started),
			l.ago(o.Finished), errorText(o.Err), l.signals(o.Signals), slices.Sorted(maps.Keys(o.Values)))
		l.note("on the sink: %v", l.signals(slices.Collect(l.sink.Sense(signals.Query{Operation: o.ID}))))
	}
	for e := range l.work.Echoes(signals.Query{}) {
		l.note("echo %v %q %v, %v, %v, %v", l.id(e.Operation), e.Key, e.Status, l.ago(e.Time), errorText(e.Err), l.signals(e.Signals))
	}
}

func errorText(err error) string {
	text, _, _ := strings.Cut(fmt.Sprint(err), "\n") // without the stack of a panic
	return text
}

func (l *lawScript) ago(t time.Time) time.Duration {
	if t.IsZero() {
		return -1
	}
	return t.Sub(l.start)
}

func (l *lawScript) signals(facts []signals.Signal) (seen []string) {
	lifecycle := l.handlers != nil && l.handlers.lifecycle
	for _, s := range facts {
		seq := s.Seq
		if lifecycle {
			if s.Name == signals.SignalStarted || s.Name == signals.SignalStopped {
				continue
			}
			seq = 0
		}
		seen = append(seen, fmt.Sprintf("%d %v %q of %v %s at %v, held %v", seq, s.Path(), s.Key, l.id(s.Operation), s.Source, l.ago(s.Time), s.Held))
	}
	return seen
}
