package core_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func processor(t testing.TB, h core.Handler, opts core.Options) *core.Processor {
	t.Helper()
	p, err := core.NewProcessor(h, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProcessorDefaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		p := processor(t, func(ctx context.Context, _ core.Signal) error { return g.body(ctx) }, core.Options{})
		defer p.Close()
		for range 4 + 1000 + 3 {
			p.Process(named("a"))
			synctest.Wait()
		}
		if s := p.Stats(); s.Running != 4 || s.Pending != 1000 || s.Dropped != 3 {
			t.Errorf("got %v, want 4 running, 1000 pending and 3 dropped", s)
		}
		checkEqual(t, "name", p.Name(), "processor")
		g.open()
	})
}

func TestReactionsHaveNoLanesAndClasses(t *testing.T) {
	for _, opts := range []core.Options{{Lanes: []core.Lane{{Name: "a"}}}, {Classes: []core.Class{{Name: "a"}}}} {
		_, err := core.NewProcessor(func(context.Context, core.Signal) error { return nil }, opts)
		coretest.Check(t, err != nil && strings.Contains(err.Error(), "Options.Lanes and Classes are for coordinators"), "got error %v for %+v", err, opts)
	}
}

func TestProcessorCountsFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, core.SignalPanicked)
		p := processor(t, func(_ context.Context, s core.Signal) error {
			switch s.Name {
			case "fail":
				return errOnPurpose
			case "panic":
				panic("on purpose")
			}
			return nil
		}, core.Options{Sink: sink})
		defer p.Close()
		for _, name := range []string{"fail", "panic", "fine"} {
			p.Process(named(name))
		}
		flushed(t, p)
		if s := p.Stats(); s.Succeeded != 1 || s.Failed != 2 || s.Panics != 0 {
			t.Errorf("got %v, want 1 succeeded and 2 failed", s)
		}
		for op := range p.Operations(core.OperationQuery{Key: "fail"}) {
			checkEqual(t, "error", op.Err, errOnPurpose)
		}
		for op := range p.Operations(core.OperationQuery{Key: "panic"}) {
			if _, ok := errors.AsType[*core.PanicError](op.Err); !ok {
				t.Errorf("got error %v, want a PanicError", op.Err)
			}
		}
		found := signals.ExpectExactly(core.SignalPanicked)
		checkSlice(t, "causes", found[0].Path(), []string{"panic", core.SignalPanicked})
	})
}

func TestProcessorOnTheSinkItListensToDoesNotLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		sink := core.NewSink(core.SinkOptions{})
		watched := coretest.Watch(t, sink, "*, operation.*")
		p := processor(t, func(ctx context.Context, s core.Signal) error {
			j.note(s.Name)
			core.OperationFrom(ctx).Raise("audited")
			if s.Name == "a" {
				sink.Because(s).Raise("follow-up")
			}
			return nil
		}, core.Options{Sink: sink, MaxConcurrency: 1})
		defer p.Close()
		defer sink.Subscribe("*", p.Process)()
		sink.Raise("a")
		flushed(t, p)
		flushed(t, p)
		j.check(t, "a", "follow-up")
		watched.ExpectExactly("a", "audited", "follow-up", "audited")
	})
}

func TestProcessorLifecycle(t *testing.T) {
	for name, opts := range map[string]core.Options{
		"zero options":  {},
		"one at a time": {MaxConcurrency: 1},
		"no window":     {MaxTracked: -1, EchoCapacity: -1},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				bodies := new(sync.Map)
				p := processor(t, runCarried(bodies), opts)
				return reactorSubject{p, p.Process, p.Pause, p.Resume, p.Sink(), bodies}.subject(1)
			})
		})
	}
}
