package signals_test

import (
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// What an owner has raised and holds leaves both the scope and the sink with it. What it was says what it had. After
// that, the scope does nothing for it.
func TestScopeEvict(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		var retracted []string
		sc := signals.NewScope(s, "sessions", signals.ScopeOptions{OnRetract: func(r signals.Retraction) { retracted = append(retracted, r.Signal.Name) }})
		o, other := &signals.Owner{ID: 7, Key: "alice"}, &signals.Owner{ID: 8}
		kind := signals.NewKind[int]("session.size")
		for range 2 {
			coretest.Check(t, sc.Raise(o, signals.Note{Name: "session.open"}), "not raised")
		}
		kind.Raise(sc.Raiser(o), "", 5)
		sc.Raiser(o).Because(signals.Signal{Name: "why"}).Raise("caused")
		sc.Hold(o, signals.Note{Name: "session.busy", Payload: 3}, time.Hour)
		sc.Raise(other, signals.Note{Name: "session.open"})
		checkEqual(t, "signals", len(sc.Signals(o)), 5)
		for signal, size := range kind.Sense(s, signals.Query{}) {
			checkEqual(t, "size", words(size, signal.Key, signal.Source, signal.Operation), words("5 alice sessions", o.ID))
		}
		checkEqual(t, "retracted by name", sc.Retract(o, "caused"), true)
		checkEqual(t, "retracted by pattern", sc.RetractMatching(o, "none*"), 0)
		checkEqual(t, "counted", sc.Count("session.*"), 5)

		last := sc.Evict(o)
		checkEqual(t, "who it was", last.Key, "alice")
		checkEqual(t, "what it had", len(sc.SignalsOf(last)), 3)
		checkEqual(t, "what it has", len(sc.Signals(o)), 0)
		checkEqual(t, "in the scope", sc.Count("*"), 1)
		checkEqual(t, "on the sink", s.Count("*"), 1)
		checkEqual(t, "taken back", len(retracted), 2) // and the release
		coretest.Check(t, !sc.Raise(o, signals.Note{Name: "late"}), "an evicted owner has raised a signal")
		sc.Hold(o, signals.Note{Name: "late"}, 0)
		sc.Evict(o)
		checkEqual(t, "late", s.Count("late"), 0)
		checkEqual(t, "of an owner that did nothing", sc.Evict(&signals.Owner{ID: 9}).ID, 9)
	})
}

// After Release, an owner holds nothing, and begins to hold nothing.
func TestScopeRelease(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	sc := signals.NewScope(s, "", signals.ScopeOptions{})
	o := &signals.Owner{ID: 1}
	sc.Hold(o, signals.Note{Name: "a"}, 0)
	release := sc.Hold(o, signals.Note{Name: "b"}, 0)
	sc.Release(o)
	release()
	sc.Hold(o, signals.Note{Name: "c"}, 0)
	checkEqual(t, "held", s.Count("*"), 0)
	coretest.Check(t, sc.Raise(o, signals.Note{Name: "d"}), "not raised")
}

// A gate tells when it has shut and opened, without a lock, and after Stop it tells nothing. A panic is counted nowhere
// else than for OnSignal.
func TestScopeGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		sc := signals.NewScope(s, "", signals.ScopeOptions{})
		o, woken := &signals.Owner{ID: 1}, 0
		var g *signals.Gate
		g = sc.Gate("stop*", func() {
			woken++
			g.Look()
			panic("on purpose")
		})
		checkEqual(t, "shut, and no gate for nothing", [2]bool{g.Shut(), sc.Gate("", nil) == nil}, [2]bool{false, true})
		s.Raise("stopped")
		sc.Raise(o, signals.Note{Name: "stop"})
		signal, again, shut := g.Look()
		checkEqual(t, "Look", words(signal.Name, again, shut), "stop 5m0s true")
		sc.Evict(o)
		s.Retract("*")
		checkEqual(t, "shut", g.Shut(), false)
		coretest.Check(t, woken >= 2, "woken %d times", woken)
		woken = 0
		g.Stop()
		g.Stop()
		s.Raise("stop")
		checkEqual(t, "woken and shut when stopped", words(woken, g.Shut()), "0 false")
	})
}
