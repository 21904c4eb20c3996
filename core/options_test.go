package core_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Weak point 2: nothing is validated up front; failures surface late and silently.
func TestOptionsRefused(t *testing.T) {
	for _, test := range []struct {
		opts core.Options
		want []string // parts of the error
	}{
		{core.Options{MaxConcurrency: -1}, []string{"MaxConcurrency", "-1"}},
		{core.Options{MaxQueued: -5}, []string{"MaxQueued", "-5"}},
		{core.Options{ResumeOn: "go"}, []string{"ResumeOn", `"go"`, "DeferOn"}},
		{core.Options{StopOnError: true}, []string{"StopOnError", "ForEach"}},
		{core.Options{MaxConcurrency: -1, MaxQueued: -5}, []string{"MaxConcurrency", "MaxQueued"}}, // all at once
	} {
		c, err := core.NewCoordinator(coretest.Run, test.opts)
		if err == nil || c != nil {
			t.Errorf("%+v: got coordinator %v and error %v, want an error", test.opts, c, err)
			continue
		}
		for _, part := range append(test.want, "core: ") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: got error %q, want it to contain %q", test.opts, err, part)
			}
		}
	}
	if _, err := core.NewCoordinator[int](nil, core.Options{}); err == nil {
		t.Error("nil work: got no error")
	}
}

func TestOptionDefaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		checkEqual(t, "Name", c.Name(), "coordinator")
		checkEqual(t, "MaxConcurrency", c.Stats().Limit, runtime.GOMAXPROCS(0))
		if c.Sink() == nil || c.Sink() == bodies(t, core.Options{}).Sink() {
			t.Error("got no sink, or one that is shared, want one of its own")
		}

		c = bodies(t, core.Options{MaxConcurrency: 1})
		g := newGate()
		enqueue(t, c, g.body)
		synctest.Wait()
		for range 1024 { // MaxQueued
			enqueue(t, c, quick)
		}
		_, err := c.TryEnqueue(quick)
		checkError(t, "TryEnqueue of one too many", err, core.ErrFull)
		g.open()
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		checkEqual(t, "MaxTracked", c.Stats().Tracked, 200)
		checkEqual(t, "EchoCapacity", len(echoed(c, core.Query{})), 256)
		time.Sleep(time.Minute)
		checkEqual(t, "EchoAge", len(echoed(c, core.Query{})), 0)
		time.Sleep(4*time.Minute - 1)
		checkEqual(t, "MaxAge, just before", c.Stats().Tracked, 200)
		time.Sleep(time.Nanosecond)
		checkEqual(t, "MaxAge, just after", c.Stats().Tracked, 0)
		closeDown(t, c)

		c = bodies(t, core.Options{DeferOn: "busy"})
		c.Sink().Raise("busy")
		begun := time.Now()
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		checkEqual(t, "MaxDefer", time.Since(begun), 5*time.Second)
	})
}

// A negative value means none, not "as few as possible".
func TestOptionsNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: -1})
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		synctest.Wait()
		checkEqual(t, "MaxTracked", c.Stats().Tracked, 0)

		c = bodies(t, core.Options{MaxAge: -1})
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		time.Sleep(1000 * time.Hour)
		checkEqual(t, "MaxAge", c.Stats().Tracked, 1)

		c = bodies(t, core.Options{DeferOn: "busy", MaxDefer: -1})
		release := c.Sink().Hold("busy", "", 0)
		id := enqueue(t, c, quick)
		time.Sleep(1000 * time.Hour)
		checkStatus(t, c, id, core.StatusPending)
		release()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
	})
}

func TestOptionName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{Name: "orders"})
		w := coretest.Watch(t, c.Sink(), "x")
		checkError(t, "Do", c.Do(t.Context(), raise("x")), nil)
		checkEqual(t, "Source", w.ExpectExactly("x")[0].Source, "orders")
	})
}

// Weak point 2, 5.6: OnSignal sees what the operations raise, before the sink's
// subscribers do; a failing callback harms nobody.
func TestOptionOnSignal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		sink := core.NewSink(core.SinkOptions{})
		sink.Subscribe("*", func(s core.Signal) { j.note("sink " + s.Name) })
		c := bodies(t, core.Options{Sink: sink, OnSignal: func(s core.Signal) {
			j.note("OnSignal " + s.Name)
			if s.Name == "bad" {
				panic("on purpose")
			}
		}})
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.Raise("good")
			op.Raise("bad")
			op.Hold("held", 0)()
			return nil
		}), nil)
		sink.Raise("direct")
		checkEqual(t, "panics", c.Stats().Panics, 1)
		var got []string
		for _, entry := range j.entries {
			if !strings.Contains(entry, "atom.") {
				got = append(got, entry)
			}
		}
		checkSlice(t, "calls", got, []string{
			"OnSignal good", "sink good", "OnSignal bad", "sink bad", "OnSignal held", "sink held", "sink direct",
		})
	})
}

func TestOptionOnRetract(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c := bodies(t, core.Options{OnRetract: func(r core.Retraction) {
			j.note(r.Signal.Name)
			panic("on purpose")
		}})
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.Raise("a")
			op.Retract("a")
			op.Hold("b", 0)()
			return nil
		}), nil)
		c.Sink().Raise("direct")
		c.Sink().Retract("direct") // nobody's
		j.check(t, "a", "b")
		checkEqual(t, "panics", c.Stats().Panics, 2)
	})
}
