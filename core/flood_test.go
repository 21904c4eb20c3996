package core_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// flood is how many unrelated signals pass.
func flood() int { return core.Often(10_000_000, 400_000) }

// Unrelated signals, each with a name of its own, pass through a window of a thousand. Monitors, gates and held
// facts stay as they are.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{Capacity: 1000})
		const failures = 7
		m := s.Monitor("payment.failed", time.Hour)
		total := s.Monitor("payment.*", 0)
		heard := 0
		s.Subscribe("payment.*", func(core.Signal) { heard++ })
		release := s.Hold("update.in-progress", "table", 0)
		s.Hold("lease", "", time.Minute)
		var ran int
		waiting := core.Must(core.NewCoordinator(func(context.Context, int) error { ran++; return nil },
			core.Options{Sink: s, DeferOn: "update.in-progress", MaxDefer: -1}))
		defer waiting.Close()
		refusing := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
			core.Options{Sink: s, CancelOn: "system.overload"}))
		defer refusing.Close()
		s.Raise("system.overload")
		accepted(t)(waiting.Enqueue(t.Context(), 0))
		// The same by a plain fact, by one of an operation, and on a sink to
		// which facts are forwarded.
		elsewhere := core.NewSink(core.SinkOptions{Capacity: 1000})
		s.Forward(elsewhere, "file.*, maintenance")
		s.Raise("maintenance")
		var others []*core.Coordinator[string]
		for _, opts := range []core.Options{
			{Sink: s, DeferOn: "maintenance", MaxDefer: -1},
			{Sink: s, DeferOn: "quota.*", MaxDefer: -1},
			{Sink: elsewhere, DeferOn: "maintenance", MaxDefer: -1},
		} {
			c := core.Must(core.NewCoordinator(func(ctx context.Context, raise string) error {
				core.OperationFrom(ctx).Raise(raise)
				return nil
			}, opts))
			defer c.Close()
			if opts.DeferOn == "quota.*" {
				c.Do(t.Context(), "quota.used")
			}
			c.Enqueue(t.Context(), "done")
			others = append(others, c)
		}

		n := flood()
		for i := range n {
			s.Raise("file.saved:/tmp/" + strconv.Itoa(i))
			if i%(n/failures) == n/failures-1 {
				s.Raise("payment.failed")
				time.Sleep(time.Second)
			}
		}

		if m.Count() != failures || total.Count() != failures || heard != failures {
			t.Errorf("monitors: got %d and %d, handler %d, want %d", m.Count(), total.Count(), heard, failures)
		}
		checkEqual(t, "Below(failures)", m.Below(failures), time.Hour-failures*time.Second+1)
		if got := newest(t, s, "update.in-progress"); !got.Held || got.Key != "table" {
			t.Errorf("the held fact: got %v", got)
		}
		coretest.Check(t, s.Has("lease"), "a held fact was pushed out")
		if got := s.Stats().Kept; got != 3 || !s.Has("system.overload") || !s.Has("maintenance") || !s.Has("quota.used") {
			t.Errorf("%d facts from before the flood are kept for gates, want 3 to be seen", got)
		}
		var refused *core.RefusedError
		if _, err := refusing.Enqueue(t.Context(), 0); !errors.As(err, &refused) || refused.Signal.Name != "system.overload" {
			t.Errorf("the cancel gate: got %v", err)
		}
		synctest.Wait()
		checkEqual(t, "deferred items that ran", ran, 0)
		for i, c := range others {
			if got := c.Stats(); got.Pending != 1 || got.Running != 0 {
				t.Errorf("deferred by a fact, case %d: got %v", i, got)
			}
		}
		if got := elsewhere.Stats(); got.Stored > 1000 || got.Raised < uint64(n) {
			t.Errorf("elsewhere: got %+v", got)
		}
		if got := s.Stats(); got.Stored > 1000 || got.Held != 2 || got.Raised < uint64(n) {
			t.Errorf("got %+v", got)
		}

		release()
		s.Retract("system.overload, maintenance")
		elsewhere.Retract("maintenance")
		for op := range others[1].Operations(core.OperationQuery{Status: core.StatusSucceeded}) {
			others[1].Evict(op.ID)
		}
		synctest.Wait()
		for i, c := range others {
			if got := c.Stats(); got.Pending != 0 || got.Succeeded == 0 {
				t.Errorf("no longer deferred, case %d: got %v", i, got)
			}
		}
		checkEqual(t, "ran", ran, 1)
		if _, err := refusing.Enqueue(t.Context(), 0); err != nil {
			t.Errorf("after the retraction: got %v", err)
		}
		time.Sleep(time.Hour)
		if s.Has("lease") || m.Count() != 0 || total.Count() != failures {
			t.Errorf("an hour later: lease %v, monitors %d and %d", s.Has("lease"), m.Count(), total.Count())
		}
	})
}

// A very large number of unique names leaves no memory behind.
func TestFloodLeavesNoMemory(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector keeps memory of its own")
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	s := core.NewSink(core.SinkOptions{Capacity: 1000})
	m := s.Monitor("file.*", time.Nanosecond)
	for i := range 5000 { // what a full window needs is there
		s.Raise("file.saved:/tmp/" + strconv.Itoa(i))
	}
	before := heap()
	for i := range flood() {
		s.Raise("file.saved:/tmp/" + strconv.Itoa(i))
		if i%1000 == 0 {
			s.Has("file.*")
			s.Has("file.saved:" + strconv.Itoa(i))
			m.Count()
		}
	}
	if grown := heap() - before; grown > 256<<10 {
		t.Errorf("%d bytes left behind", grown)
	}
	runtime.KeepAlive(s)
}
