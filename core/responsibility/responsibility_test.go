package responsibility_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// scene is a coordinator whose window shows only pinned operations, with a Keeper for them.
type scene struct {
	*responsibility.Keeper
	t    *testing.T
	sink *signals.Sink
	c    *core.Coordinator[coretest.Body]
}

// stage runs a test in a bubble, which has its own clock. No goroutine may be left behind.
func stage(t *testing.T, opts responsibility.Options, test func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		c, err := core.NewCoordinator(coretest.Run, core.Options{Sink: sink, MaxTracked: 100, MaxAge: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		k, err := responsibility.New(c, sink, opts)
		if err != nil {
			t.Fatal(err)
		}
		test(t, &scene{Keeper: k, t: t, sink: sink, c: c})
		if err := k.Close(); err != nil {
			t.Errorf("Close: got %v, want nil", err)
		}
		c.Close()
	})
}

// operation starts an operation that runs until it is released.
func (s *scene) operation() (id core.OperationID, finish func()) {
	s.t.Helper()
	done := make(chan struct{})
	id, err := s.c.TryEnqueue(context.Background(), func(ctx context.Context) error {
		select {
		case <-done:
		case <-ctx.Done():
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id, func() {
		close(done)
		synctest.Wait()
		time.Sleep(time.Nanosecond) // the window's age
	}
}

// kept makes a finished operation, and a promise that keeps it in the window.
func (s *scene) kept(p responsibility.Promise) core.OperationID {
	s.t.Helper()
	id, finish := s.operation()
	if !s.Keep(id, p) {
		s.t.Fatalf("Keep(%+v): got false, want true", p)
	}
	finish()
	return id
}

func (s *scene) visible(id core.OperationID) bool {
	_, ok := s.c.Lookup(id)
	return ok
}

func (s *scene) mustBeKept(id core.OperationID, when string) {
	s.t.Helper()
	if !s.visible(id) {
		s.t.Errorf("%s: the operation has left the window, want it kept", when)
	}
	if !slices.Contains(s.active(), id) {
		s.t.Errorf("%s: the promise is not active", when)
	}
}

func (s *scene) mustBeReleased(id core.OperationID, when string) {
	s.t.Helper()
	if s.visible(id) {
		s.t.Errorf("%s: the operation is still in the window", when)
	}
	if slices.Contains(s.active(), id) {
		s.t.Errorf("%s: the promise is still active", when)
	}
}

func (s *scene) active() []core.OperationID {
	var ids []core.OperationID
	for id := range s.Active() {
		ids = append(ids, id)
	}
	if len(ids) != s.Len() {
		s.t.Errorf("Len: got %d, want %d as Active shows", s.Len(), len(ids))
	}
	return ids
}

// Fault avoided: there are no signals about pins, releases and expiries. These signals must
// not count as acknowledgements.
func TestReportsWhatItDoes(t *testing.T) {
	stage(t, responsibility.Options{MaxPin: time.Minute}, func(t *testing.T, s *scene) {
		facts := coretest.Watch(t, s.sink, "responsibility.*, file.*")
		promise := responsibility.Promise{Announce: "file.ready", Ack: "*", Key: "f1"}
		s.kept(promise)
		got := facts.ExpectExactly(responsibility.SignalKept, "file.ready")
		for _, signal := range got {
			coretest.Check(t, signal.Key == "f1", "%s: got key %q, want that of the promise", signal.Name, signal.Key)
		}
		s.sink.RaiseKey("file.seen", "f1")
		got = facts.ExpectExactly("file.seen", responsibility.SignalReleased)
		if want := []string{"file.seen", responsibility.SignalReleased}; !slices.Equal(got[1].Path(), want) {
			t.Errorf("causes of the release: got %v, want %v", got[1].Path(), want)
		}

		for want, end := range map[string]func(core.OperationID){
			responsibility.SignalReleased: func(id core.OperationID) { s.Complete(id) },
			responsibility.SignalExpired:  func(core.OperationID) { time.Sleep(time.Minute); synctest.Wait() },
		} {
			end(s.kept(promise))
			facts.ExpectExactly(responsibility.SignalKept, "file.ready", want)
		}
		s.kept(promise)
		s.Close()
		facts.ExpectExactly(responsibility.SignalKept, "file.ready", responsibility.SignalReleased)
	})
}

// Fault avoided: if the sink is quiet, pins outlive their limit. The limit is five minutes
// by default, or none. The limit of a promise goes before the limit of the Keeper.
func TestExpiresWithoutAnySignal(t *testing.T) {
	for given, want := range map[[2]time.Duration]time.Duration{
		{}: 5 * time.Minute, {-1, 0}: 0, {time.Minute, -1}: 0, {time.Minute, 5 * time.Minute}: 5 * time.Minute,
	} {
		stage(t, responsibility.Options{MaxPin: given[0]}, func(t *testing.T, s *scene) {
			begun := time.Now()
			id := s.kept(responsibility.Promise{MaxPin: given[1]})
			for _, p := range s.Active() {
				coretest.Check(t, p.Until.IsZero() == (want == 0) && (want <= 0 || p.Until.Sub(p.Since) == want), "got a promise from %v until %v, want %v", p.Since, p.Until, want)
			}
			time.Sleep(time.Until(begun.Add(5*time.Minute - 1)))
			s.mustBeKept(id, "just before five minutes")
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if want > 0 {
				s.mustBeReleased(id, "after five minutes")
			} else {
				s.mustBeKept(id, "without a limit")
			}
		})
	}
}

// Fault avoided: an acknowledgement between the pin and the registration is missed.
func TestAcknowledgedWhilePinning(t *testing.T) {
	stage(t, responsibility.Options{}, func(t *testing.T, s *scene) {
		facts := coretest.Watch(t, s.sink, "responsibility.*, file.*")
		k := core.Must(responsibility.New(pinnerFunc(func(id core.OperationID) (func(), bool) {
			s.sink.RaiseKey("file.ready.ack", "f1")
			return s.c.Pin(id)
		}), s.sink, responsibility.Options{}))
		defer k.Close()
		id, finish := s.operation()
		coretest.Check(t, k.Keep(id, responsibility.Promise{Announce: "file.ready", Key: "f1"}), "Keep: got false, want true")
		finish()
		coretest.Check(t, k.Len() == 0, "%d promises are left, want none: the acknowledgement was missed", k.Len())
		coretest.Check(t, !s.visible(id), "the operation is kept, want it gone")
		facts.ExpectExactly("file.ready.ack", responsibility.SignalKept, responsibility.SignalReleased, "file.ready")
	})
}

type pinnerFunc func(core.OperationID) (func(), bool)

func (f pinnerFunc) Pin(id core.OperationID) (func(), bool) { return f(id) }

// Fault avoided: a pin that the user has set by hand is removed by the acknowledgement.
func TestPinsOfOthersStay(t *testing.T) {
	stage(t, responsibility.Options{}, func(t *testing.T, s *scene) {
		id, finish := s.operation()
		unpin, _ := s.c.Pin(id)
		s.Keep(id, responsibility.Promise{})
		finish()
		s.sink.RaiseKey("responsibility.ack.read", id.String())
		coretest.Check(t, s.visible(id), "the operation has left the window although it has another pin")
		unpin()
		s.mustBeReleased(id, "after the last unpin")
	})
}

func TestActive(t *testing.T) {
	stage(t, responsibility.Options{}, func(t *testing.T, s *scene) {
		begun := time.Now()
		id := s.kept(responsibility.Promise{Announce: "file.ready", Description: "awaiting read"})
		time.Sleep(time.Second)
		s.kept(responsibility.Promise{})
		for got, p := range s.Active() {
			coretest.Check(t, got == id, "the first is %v, want the oldest, %v", got, id)
			want := responsibility.Promise{Announce: "file.ready", Ack: "file.ready.ack", Key: id.String(), Description: "awaiting read", MaxPin: 5 * time.Minute}
			coretest.Check(t, p.Promise == want, "got %+v, want %+v", p.Promise, want)
			coretest.Check(t, p.Since.Equal(begun), "Since: got %v, want %v", p.Since, begun)
			s.Close() // the loop shows the promises at its start
			break
		}
	})
}

func TestKeepOfWhatCannotBePinned(t *testing.T) {
	stage(t, responsibility.Options{}, func(t *testing.T, s *scene) {
		facts := coretest.Watch(t, s.sink, "responsibility.*, file.*")
		id, finish := s.operation()
		finish()
		coretest.Check(t, !s.Keep(id, responsibility.Promise{Announce: "file.ready"}), "Keep of an operation that has left: got true, want false")
		facts.None()
		for range 100 { // MaxTracked
			s.kept(responsibility.Promise{})
		}
		facts.Expect(responsibility.SignalKept)
		id, _ = s.operation()
		coretest.Check(t, !s.Keep(id, responsibility.Promise{}), "Keep of more than may be pinned: got true, want false")
	})
}

// An operation can leave in spite of its pin. Then the promise ends, and nothing is left of
// it.
func TestOperationLeavesAnyway(t *testing.T) {
	stage(t, responsibility.Options{MaxPin: -1}, func(t *testing.T, s *scene) {
		facts := coretest.Watch(t, s.sink, responsibility.SignalReleased)
		closed := s.kept(responsibility.Promise{})
		s.c.Close()
		s.mustBeReleased(closed, "after Close of the coordinator")
		facts.ExpectExactly(responsibility.SignalReleased)
		coretest.Check(t, !s.Keep(closed, responsibility.Promise{}), "Keep after Close of the coordinator: got true, want false")
	})
}

// The operation leaves, or the Keeper is closed, after it was pinned and before the
// promise stands.
func TestGoneWhilePinning(t *testing.T) {
	for name, meanwhile := range map[string]func(*scene, *responsibility.Keeper, core.OperationID){
		"evicted":            func(s *scene, _ *responsibility.Keeper, id core.OperationID) { s.c.Evict(id) },
		"coordinator closed": func(s *scene, _ *responsibility.Keeper, _ core.OperationID) { s.c.Close() },
		"keeper closed":      func(_ *scene, k *responsibility.Keeper, _ core.OperationID) { k.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, responsibility.Options{}, func(t *testing.T, s *scene) {
				var (
					k *responsibility.Keeper
					p = &pinner{Coordinator: s.c}
				)
				p.pinned = func(id core.OperationID) { meanwhile(s, k, id) }
				k = core.Must(responsibility.New(p, s.sink, responsibility.Options{}))
				defer k.Close()
				facts := coretest.Watch(t, s.sink, "responsibility.*, file.*")
				id, finish := s.operation()
				unpin, _ := s.c.Pin(id)
				finish()
				coretest.Check(t, !k.Keep(id, responsibility.Promise{Announce: "file.ready"}), "Keep: got true, want false")
				facts.None()
				unpin()
				coretest.Check(t, k.Len() == 0, "%d promises are left, want none", k.Len())
				coretest.Check(t, !s.visible(id), "the operation is kept, want it gone")
			})
		})
	}
}

// pinner is a coordinator that lets something happen right after it has pinned.
type pinner struct {
	*core.Coordinator[coretest.Body]
	pinned func(core.OperationID)
}

func (p *pinner) Pin(id core.OperationID) (func(), bool) {
	unpin, ok := p.Coordinator.Pin(id)
	p.pinned(id)
	return unpin, ok
}

// Fault avoided: pins made after it was disposed of are never released.
func TestClose(t *testing.T) {
	stage(t, responsibility.Options{}, func(t *testing.T, s *scene) {
		a, b := s.kept(responsibility.Promise{}), s.kept(responsibility.Promise{})
		for range 3 {
			if err := s.Close(); err != nil {
				t.Errorf("Close: got %v, want nil", err)
			}
		}
		s.mustBeReleased(a, "after Close")
		s.mustBeReleased(b, "after Close")
		id, finish := s.operation()
		coretest.Check(t, !s.Keep(id, responsibility.Promise{}), "Keep after Close: got true, want false")
		finish()
		s.mustBeReleased(id, "Keep came after Close")
		time.Sleep(time.Hour)
	})
}

// A coordinator raises lifecycle signals only while there are subscribers. So they show
// whether the Keeper has subscribed.
func TestSubscribesOnlyWhileThereArePromises(t *testing.T) {
	stage(t, responsibility.Options{}, func(t *testing.T, s *scene) {
		listens := func() bool {
			synctest.Wait() // subscriptions end aside
			before := s.sink.Stats().Raised
			s.c.Do(t.Context(), func(context.Context) error { return nil })
			return s.sink.Stats().Raised > before
		}
		promise := responsibility.Promise{Ack: signals.SignalStarted}
		coretest.Check(t, !listens(), "it listens although nothing was promised")
		a, b := s.kept(promise), s.kept(promise)
		s.Complete(a)
		coretest.Check(t, listens(), "it does not listen although one promise is left")
		s.sink.RaiseKey(signals.SignalStarted, b.String())
		coretest.Check(t, !listens(), "it listens although no promise is left")
		s.Keep(b, promise) // it is gone
		coretest.Check(t, !listens(), "it listens although nothing could be kept")
		s.kept(promise)
		s.Close()
		coretest.Check(t, !listens(), "it listens after Close")
	})
}

// A handler of the Keeper's signals may wait for a goroutine that ends a promise, or closes
// the Keeper, at the same time.
func TestHandlersMayWait(t *testing.T) {
	for name, end := range map[string]func(s *scene, first core.OperationID){
		"acknowledge": func(s *scene, first core.OperationID) { s.sink.RaiseKey("seen", "a") },
		"evict":       func(s *scene, first core.OperationID) { s.c.Evict(first) },
		"expire":      func(s *scene, first core.OperationID) { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, responsibility.Options{MaxPin: time.Hour}, func(t *testing.T, s *scene) {
				first := s.kept(responsibility.Promise{Ack: "seen", Key: "a"})
				time.Sleep(time.Minute)
				second := s.kept(responsibility.Promise{Ack: "seen", Key: "b"})
				done := make(chan struct{})
				defer s.sink.Subscribe(responsibility.SignalReleased+","+responsibility.SignalExpired, func(signal signals.Signal) {
					if signal.Key == "a" {
						<-done
					}
				})()
				ended := make(chan struct{})
				go func() { end(s, first); close(ended) }()
				time.Sleep(time.Hour)
				go func() { s.Complete(second); s.Close(); close(done) }()
				<-ended
				synctest.Wait()
				coretest.Check(t, s.Len() == 0, "got %d promises, want none", s.Len())
			})
		})
	}
}

// A handler of the Keeper's signals may call the Keeper.
func TestCallsFromHandlers(t *testing.T) {
	stage(t, responsibility.Options{MaxPin: time.Minute}, func(t *testing.T, s *scene) {
		var again core.OperationID
		defer s.sink.Subscribe(responsibility.SignalReleased, func(signals.Signal) {
			if again != 0 && s.Keep(again, responsibility.Promise{Ack: "seen", Key: "again"}) {
				again = 0
			}
		})()
		defer s.sink.Subscribe(responsibility.SignalExpired, func(signals.Signal) { s.Close() })()
		again, _ = s.operation()
		s.kept(responsibility.Promise{Ack: "seen", Key: "a"})
		s.sink.RaiseKey("seen", "a") // the last promise of its pattern ends, and a new first one begins
		if s.Len() != 1 {
			t.Fatalf("got %d promises, want the one made by the handler", s.Len())
		}
		s.sink.RaiseKey("seen", "again")
		coretest.Check(t, s.Len() == 0, "the promise made by the handler did not hear its acknowledgement")
		s.kept(responsibility.Promise{})
		s.kept(responsibility.Promise{})
		time.Sleep(time.Minute)
		synctest.Wait()
		coretest.Check(t, s.Len() == 0, "promises are left after Close by a handler")
	})
}

func TestNewNeedsSomethingToWorkWith(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	if _, err := responsibility.New(nil, sink, responsibility.Options{}); err == nil {
		t.Error("without a coordinator: got no error")
	}
	c := core.Must(core.NewCoordinator(coretest.Run, core.Options{}))
	if _, err := responsibility.New(c, nil, responsibility.Options{}); err == nil {
		t.Error("without a sink: got no error")
	}
}

// Fault avoided: every raised signal goes through all registrations. If no promise
// has the signal's name or key, the signal costs as much with a thousand promises as
// with none.
func TestOtherSignalsAreNotLookedAt(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	k := core.Must(responsibility.New(pinnerFunc(func(core.OperationID) (func(), bool) {
		return func() {}, true
	}), sink, responsibility.Options{}))
	defer k.Close()
	for id := range core.OperationID(1000) {
		k.Keep(id, responsibility.Promise{Announce: "file.ready", Key: id.String()})
	}
	for _, name := range []string{"unrelated", "file.ready.ack"} {
		if allocs := testing.AllocsPerRun(100, func() { sink.RaiseKey(name, "nobody's") }); allocs > 0 {
			t.Errorf("raising %q: got %v allocations, want none", name, allocs)
		}
	}
	coretest.Check(t, k.Len() == 1000, "got %d promises, want 1000", k.Len())
}

// model is a Keeper that goes through all its promises for everything.
type model struct {
	maxPin   time.Duration
	promises []modelPromise
	ended    int
}

type modelPromise struct {
	id    core.OperationID
	terms responsibility.Promise
	since time.Time
}

func (m *model) drop(which func(modelPromise) bool) {
	before := len(m.promises)
	m.promises = slices.DeleteFunc(m.promises, which)
	m.ended += before - len(m.promises)
}

func (m *model) gone(id core.OperationID) {
	m.drop(func(p modelPromise) bool { return p.id == id })
}

func (m *model) keep(id core.OperationID, terms responsibility.Promise) {
	m.promises = slices.DeleteFunc(m.promises, func(p modelPromise) bool { return p.id == id }) // replaced, which is no end
	m.promises = append(m.promises, modelPromise{id, terms, time.Now()})
	if terms.Announce != "" {
		key := terms.Key
		if key == "" {
			key = id.String()
		}
		m.signal(terms.Announce, key)
	}
}

func (m *model) signal(name, key string) {
	m.drop(func(p modelPromise) bool {
		want := p.terms.Key
		if want == "" {
			want = p.id.String()
		}
		switch {
		case key != want, name == p.terms.Announce, signals.Match("responsibility.kept, responsibility.released, responsibility.expired", name):
			return false
		case strings.Trim(p.terms.Ack, " ,") != "":
			return signals.Match(p.terms.Ack, name)
		case p.terms.Announce != "":
			return name == p.terms.Announce+".ack"
		}
		return signals.Match("responsibility.ack.*", name)
	})
}

func (m *model) passed() {
	m.drop(func(p modelPromise) bool {
		limit := cmp.Or(p.terms.MaxPin, m.maxPin)
		return limit > 0 && time.Since(p.since) >= limit
	})
}

func TestAgainstModel(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) { compareWithModel(t, seed) })
	}
}

func compareWithModel(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }

	sink := signals.NewSink(signals.SinkOptions{})
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
		core.Options{Sink: sink, MaxTracked: 20, MaxAge: -1}))
	defer c.Close()
	var ids []core.OperationID
	for i := range 20 {
		id, err := c.TryEnqueue(context.Background(), i)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	c.Flush(t.Context())

	m := &model{maxPin: time.Minute}
	k := core.Must(responsibility.New(c, sink, responsibility.Options{MaxPin: m.maxPin}))
	defer k.Close()
	ended := sink.Monitor("responsibility.released, responsibility.expired", 0)
	defer ended.Stop()
	evicted := make(map[core.OperationID]bool)

	for step := range 500 {
		id := ids[random.IntN(len(ids))]
		did := ""
		switch n := random.IntN(100); {
		case n < 45:
			terms := responsibility.Promise{
				Announce: pick("", "a.ready", "b.ready"),
				Ack:      pick("", "", " , ", "seen.*", "a.*, b.*", "*"),
				Key:      pick("", "x", "y"),
				MaxPin:   time.Duration(random.IntN(4)-1) * 45 * time.Second,
			}
			did = fmt.Sprintf("Keep(%d, %+v)", id, terms)
			got := k.Keep(id, terms)
			if got == evicted[id] {
				t.Fatalf("seed %d, step %d: %s: got %t", seed, step, did, got)
			}
			if got {
				m.keep(id, terms)
			}
		case n < 80:
			name := pick("a.ready.ack", "b.ready.ack", "a.ready", "seen.now", "responsibility.ack.now", "responsibility.ack.", "responsibility.ack", responsibility.SignalKept, "other")
			key := pick("x", "y", "xx", id.String(), "")
			did = fmt.Sprintf("RaiseKey(%q, %q)", name, key)
			sink.RaiseKey(name, key)
			m.signal(name, key)
		case n < 85:
			did = fmt.Sprintf("Complete(%d)", id)
			k.Complete(id)
			m.gone(id)
		case n < 87:
			did = fmt.Sprintf("Evict(%d)", id)
			c.Evict(id)
			evicted[id] = true
			m.gone(id)
		default:
			d := time.Duration(random.IntN(30)) * time.Second
			did = fmt.Sprintf("Sleep(%v)", d)
			time.Sleep(d)
			synctest.Wait()
			m.passed()
		}

		var got, want []string
		for id, p := range k.Active() {
			op, _ := c.Lookup(id)
			got = append(got, fmt.Sprint(id, p.Announce, p.Since.UnixNano(), op.Pins))
		}
		for _, p := range m.promises {
			want = append(want, fmt.Sprint(p.id, p.terms.Announce, p.since.UnixNano(), 1))
		}
		if !slices.Equal(got, want) || c.Stats().Pinned != len(want) || ended.Count() != m.ended {
			t.Fatalf("seed %d, step %d: after %s:\n got %q, and %d pinned, %d ended\nwant %q, %d ended", seed, step, did, got, c.Stats().Pinned, ended.Count(), want, m.ended)
		}
	}
}

// With everything at once, each promise ends once, and no pin is left.
func TestEverythingAtOnce(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			sink := signals.NewSink(signals.SinkOptions{})
			c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
				core.Options{Sink: sink, MaxTracked: 20, MaxAge: -1}))
			defer c.Close()
			k := core.Must(responsibility.New(c, sink, responsibility.Options{MaxPin: 20 * time.Millisecond}))
			kept, ended := sink.Monitor(responsibility.SignalKept, 0), sink.Monitor("responsibility.released, responsibility.expired", 0)
			defer kept.Stop()
			defer ended.Stop()
			defer sink.Subscribe("file.ready", func(s signals.Signal) {
				if s.Key == "at once" {
					sink.RaiseKey("file.ready.ack", s.Key)
				}
			})()

			var all sync.WaitGroup
			for g := range uint64(8) {
				all.Go(func() {
					random := rand.New(rand.NewPCG(seed, g))
					for range 100 {
						id, err := c.TryEnqueue(context.Background(), 0)
						if err != nil {
							t.Error(err)
							return
						}
						key := []string{"at once", "a", "b", "c"}[random.IntN(4)]
						k.Keep(id, responsibility.Promise{Announce: "file.ready", Key: key})
						switch random.IntN(6) {
						case 0:
							sink.RaiseKey("file.ready.ack", key)
						case 1:
							k.Complete(id)
						case 2:
							c.Evict(id)
						case 3:
							time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
						case 4:
							if g == 0 && random.IntN(20) == 0 {
								k.Close()
							}
						}
					}
				})
			}
			all.Wait()
			k.Close()
			synctest.Wait()
			coretest.Check(t, kept.Count() == ended.Count(), "seed %d: %d promises were kept and %d have ended", seed, kept.Count(), ended.Count())
			if n := c.Stats().Pinned; n != 0 {
				t.Errorf("seed %d: %d operations are still pinned", seed, n)
			}
		})
	}
}
