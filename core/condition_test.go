package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// CancelOn, DeferOn, ResumeOn, MaxDefer and DrainOn: what signals do to the intake
// and to what waits. The reference is sections 6.6 to 6.9 of the core's.

func TestCancelOnAtTheDoor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, CancelOn: "maintenance.*, shutting-down"})
		sink.Raise("maintenance.planned")
		id, err := c.Enqueue(t.Context(), quick)
		checkRefusal(t, err, "maintenance.planned")
		checkEqual(t, "id", id, 0)
		_, err = c.TryEnqueue(quick)
		checkRefusal(t, err, "maintenance.planned")
		checkRefusal(t, c.Do(t.Context(), quick), "maintenance.planned")
		s := c.Stats()
		if s.Rejected != 3 || s.Enqueued != 0 || s.Refused != 0 || s.Failed != 0 {
			t.Errorf("got %v, want 3 rejected and nothing else", s)
		}
		sink.Retract("maintenance.*")
		checkError(t, "Do after the retraction", c.Do(t.Context(), quick), nil)
	})
}

// Weak point 6.6: a skipped item is lost without a trace beyond a counter shared
// with failures.
func TestCancelOnAtTheStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, CancelOn: "stop", MaxConcurrency: 1})
		g := newGate()
		first := enqueue(t, c, g.body)
		second := enqueue(t, c, func(context.Context) error { t.Error("a refused item ran"); return nil })
		synctest.Wait()
		sink.Raise("stop")
		checkStatus(t, c, second, core.StatusPending) // not before its turn
		g.open()
		synctest.Wait()
		checkStatus(t, c, first, core.StatusSucceeded)
		s := checkStatus(t, c, second, core.StatusRefused)
		checkRefusal(t, s.Err, "stop")
		checkRefusal(t, c.Wait(t.Context(), second), "stop")
		if !s.Started.IsZero() || s.Finished.IsZero() {
			t.Errorf("got started %v, finished %v, want not started but finished", s.Started, s.Finished)
		}
		if s := c.Stats(); s.Refused != 1 || s.Failed != 0 || s.Succeeded != 1 {
			t.Errorf("got %v, want one refused and one succeeded", s)
		}
	})
}

// Weak point 2, 6.6: in the original a coordinator looks at its own window only.
func TestCancelOnHeedsOwnWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{CancelOn: "circuit-open"})
		id := enqueue(t, c, raise("circuit-open"))
		synctest.Wait()
		_, err := c.TryEnqueue(quick)
		checkRefusal(t, err, "circuit-open")
		c.Evict(id) // and with it its signals
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
	})
}

// Weak point 6.6: once every item is skipped nothing trims, so the circuit stays
// open for ever unless somebody reads.
func TestCancelOnHealsByItself(t *testing.T) {
	t.Run("age of the sink", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			sink := core.NewSink(core.SinkOptions{MaxAge: time.Minute})
			c := bodies(t, core.Options{Sink: sink, CancelOn: "stop"})
			sink.Raise("stop")
			time.Sleep(time.Minute - 1)
			_, err := c.TryEnqueue(quick)
			checkRefusal(t, err, "stop")
			time.Sleep(time.Nanosecond)
			checkError(t, "Do", c.Do(t.Context(), quick), nil)
		})
	})
	t.Run("age of the window", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := bodies(t, core.Options{CancelOn: "stop", MaxAge: time.Minute})
			checkError(t, "Do", c.Do(t.Context(), raise("stop")), nil)
			time.Sleep(time.Minute - 1)
			_, err := c.TryEnqueue(quick)
			checkRefusal(t, err, "stop")
			time.Sleep(time.Second)
			checkError(t, "Do", c.Do(t.Context(), quick), nil)
			closeDown(t, c)
		})
	})
	t.Run("end of a lease", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			sink := core.NewSink(core.SinkOptions{})
			c := bodies(t, core.Options{Sink: sink, CancelOn: "stop"})
			sink.Hold("stop", "", time.Minute)
			time.Sleep(time.Minute)
			checkError(t, "Do", c.Do(t.Context(), quick), nil)
		})
	})
}

func TestGatesOutliveChatter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{Capacity: 4})
		c := bodies(t, core.Options{Sink: sink, CancelOn: "stop", MaxConcurrency: 1})
		sink.Raise("stop")
		for range 100 {
			sink.Raise("chatter")
		}
		_, err := c.TryEnqueue(quick)
		checkRefusal(t, err, "stop")
		sink.Retract("stop")
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
	})
}

// Weak point 3.5: patterns like "*" match every operation because of the lifecycle
// signals.
func TestGatesIgnoreLifecycleSignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		w := coretest.Watch(t, sink, "atom.*")
		c := bodies(t, core.Options{Sink: sink, CancelOn: "*"})
		for range 2 {
			checkError(t, "Do", c.Do(t.Context(), quick), nil)
		}
		w.ExpectExactly(core.SignalStarted, core.SignalStopped, core.SignalStarted, core.SignalStopped)
	})
}

// What is not accepted any more is not refused either, and gates that nobody
// attends to any more must not answer.
func TestClosedBeatsRefused(t *testing.T) {
	for name, end := range map[string]func(c *core.Coordinator[coretest.Body]){
		"complete": func(c *core.Coordinator[coretest.Body]) { c.Complete() },
		"drain":    func(c *core.Coordinator[coretest.Body]) { c.Drain(context.Background()) },
		"close":    func(c *core.Coordinator[coretest.Body]) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sink := core.NewSink(core.SinkOptions{})
				c := bodies(t, core.Options{Sink: sink, CancelOn: "stop"})
				sink.Raise("stop")
				end(c)
				_, err := c.TryEnqueue(quick)
				checkError(t, "TryEnqueue while the signal is there", err, core.ErrClosed)
				sink.Retract("stop")
				_, err = c.TryEnqueue(quick)
				checkError(t, "TryEnqueue after its retraction", err, core.ErrClosed)
				checkEqual(t, "rejected", c.Stats().Rejected, 2)
			})
		})
	}
}

// An operation's signals last as long as it is in the window: what starts when its
// end, or that of the one that pushes it out, frees the slot, must not be refused
// because of them.
func TestSignalsOfDepartedDoNotRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		tracked int
		last    coretest.Body // what the culprit does before it ends
	}{
		"no window":       {-1, raise("stop")},
		"window of one":   {1, raise("stop")},
		"held until then": {10, func(ctx context.Context) error { core.OperationFrom(ctx).Hold("stop", 0); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := bodies(t, core.Options{CancelOn: "stop", MaxConcurrency: 2, MaxTracked: test.tracked})
				culprit, other := newGate(), newGate()
				enqueue(t, c, func(ctx context.Context) error {
					<-culprit.opened
					return test.last(ctx)
				})
				enqueue(t, c, other.body)
				synctest.Wait()
				id := enqueue(t, c, quick)
				c.SetMaxConcurrency(1)
				if test.tracked == 1 {
					culprit.open() // frees no slot
					synctest.Wait()
					other.open() // frees the slot and pushes the culprit out
				} else {
					other.open()
					synctest.Wait()
					culprit.open()
				}
				synctest.Wait()
				if s := c.Stats(); s.Refused != 0 || s.Succeeded != 3 {
					t.Errorf("operation %d was refused because of a signal of one that had left: got %v, want all succeeded", id, s)
				}
				closeDown(t, c)
			})
		})
	}
}

func TestDeferOnSink(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(*core.Sink) (end func())
	}{
		"raised and retracted": {func(s *core.Sink) func() {
			s.Raise("backpressure.downstream")
			return func() { s.Retract("backpressure.downstream") }
		}},
		"held and released": {func(s *core.Sink) func() { return s.Hold("backpressure.downstream", "", 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sink := core.NewSink(core.SinkOptions{})
				c := bodies(t, core.Options{Sink: sink, DeferOn: "backpressure.*", MaxDefer: -1})
				end := test.begin(sink)
				id := enqueue(t, c, quick)
				time.Sleep(time.Hour)
				checkStatus(t, c, id, core.StatusPending)
				ended := time.Now()
				end()
				synctest.Wait()
				s := checkStatus(t, c, id, core.StatusSucceeded)
				if !s.Started.Equal(ended) { // nothing polls
					t.Errorf("started %v after the signal went, want at once", s.Started.Sub(ended))
				}
				checkEqual(t, "forced", c.Stats().Forced, 0)
			})
		})
	}
}

func TestDeferOnEndsWithAge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{MaxAge: time.Minute})
		c := bodies(t, core.Options{Sink: sink, DeferOn: "busy", MaxDefer: -1})
		sink.Raise("busy")
		begun := time.Now()
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		checkEqual(t, "deferred for", time.Since(begun), time.Minute)
	})
}

func TestDeferOnEndsWithLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, DeferOn: "busy", MaxDefer: -1})
		sink.Hold("busy", "", time.Minute)
		begun := time.Now()
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		checkEqual(t, "deferred for", time.Since(begun), time.Minute)
	})
}

// Docs: a coordinator without a sink that defers on signals of its own operations
// must work.
func TestDeferOnOwnWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{DeferOn: "rate-limit", MaxDefer: -1})
		limited := enqueue(t, c, raise("rate-limit"))
		synctest.Wait()
		next := enqueue(t, c, quick)
		synctest.Wait()
		checkStatus(t, c, next, core.StatusPending)
		c.Evict(limited)
		synctest.Wait()
		checkStatus(t, c, next, core.StatusSucceeded)
	})
}

// Waiting behind several signals ends when the last one has gone, in whatever
// order and way they go.
func TestDeferOnSeveralSignals(t *testing.T) {
	setup := func(t *testing.T) (*core.Sink, *core.Coordinator[coretest.Body]) {
		sink := core.NewSink(core.SinkOptions{})
		return sink, bodies(t, core.Options{Sink: sink, DeferOn: "busy.*", MaxDefer: -1})
	}
	t.Run("the older goes first", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			sink, c := setup(t)
			sink.Raise("busy.a")
			id := enqueue(t, c, quick)
			sink.Raise("busy.b")
			sink.Retract("busy.a")
			synctest.Wait()
			checkStatus(t, c, id, core.StatusPending)
			sink.Retract("busy.b")
			synctest.Wait()
			checkStatus(t, c, id, core.StatusSucceeded)
		})
	})
	// The lease that is left when the others have gone must ring the alarm.
	t.Run("a lease is left", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			sink, c := setup(t)
			sink.Raise("busy.a")
			id := enqueue(t, c, quick)
			synctest.Wait() // it has seen that nothing ends by itself
			sink.Hold("busy.b", "", time.Minute)
			sink.Retract("busy.a")
			time.Sleep(time.Minute)
			synctest.Wait()
			checkStatus(t, c, id, core.StatusSucceeded)
			closeDown(t, c)
		})
	})
}

// Docs: update.done resumes readers without any retraction.
func TestResumeOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, DeferOn: "update.start", ResumeOn: "update.done", MaxDefer: -1})
		check := func(what string, want core.Status) {
			t.Helper()
			id := enqueue(t, c, quick)
			synctest.Wait()
			s, _ := c.Lookup(id)
			checkEqual(t, what, s.Status, want)
			c.Cancel(id, nil)
		}
		check("nothing raised", core.StatusSucceeded)
		sink.Raise("update.done") // of an earlier batch
		check("stale resume", core.StatusSucceeded)
		// Weak point 6.7: a stale resume signal disables deferral.
		sink.Raise("update.start")
		check("newer defer", core.StatusPending)
		sink.Raise("update.done")
		check("newer resume", core.StatusSucceeded)
		sink.Raise("update.start")
		check("still newer defer", core.StatusPending)

		id := enqueue(t, c, quick)
		synctest.Wait()
		sink.Raise("update.done")
		synctest.Wait()
		checkStatus(t, c, id, core.StatusSucceeded) // woken by it
		sink.Retract("update.done")
		check("resume retracted", core.StatusPending)
	})
}

// When the newest of two deferring signals goes, a resume that is newer than the
// other one wins, at once.
func TestResumeNewerThanWhatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, DeferOn: "defer.*", ResumeOn: "resume", MaxDefer: -1})
		sink.Raise("defer.old")
		sink.Raise("resume")
		sink.Raise("defer.new")
		id := enqueue(t, c, quick)
		synctest.Wait()
		checkStatus(t, c, id, core.StatusPending)
		sink.Retract("defer.new")
		synctest.Wait()
		checkStatus(t, c, id, core.StatusSucceeded)
		closeDown(t, c)
	})
}

// Weak point 6.7: the limit is per item, so that with a lasting signal each queued
// item waits anew.
func TestMaxDefer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		w := coretest.Watch(t, sink, "coordinator.*")
		c := bodies(t, core.Options{Sink: sink, DeferOn: "busy", MaxDefer: time.Second, MaxConcurrency: 1})
		sink.Raise("busy")
		begun := time.Now()
		for range 10 {
			enqueue(t, c, quick)
		}
		time.Sleep(time.Second - 1)
		synctest.Wait()
		checkEqual(t, "pending just before", c.Stats().Pending, 10)
		w.None()
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		checkEqual(t, "deferred for", time.Since(begun), time.Second)
		checkEqual(t, "forced", c.Stats().Forced, 10)
		for range 10 {
			w.Expect(core.SignalForced)
		}
		w.None()

		// One that comes later is deferred from when it comes.
		time.Sleep(time.Hour)
		begun = time.Now()
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		checkEqual(t, "the later one was deferred for", time.Since(begun), time.Second)
	})
}

// An item that waits for another reason when the deferral begins is deferred from
// then on.
func TestMaxDeferCountsFromWhenDeferralBegan(t *testing.T) {
	setup := func(t *testing.T, resumeOn string) (*core.Sink, *core.Coordinator[coretest.Body], *gate) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, DeferOn: "busy", ResumeOn: resumeOn, MaxDefer: 5 * time.Second, MaxConcurrency: 1})
		g := newGate()
		enqueue(t, c, g.body)
		return sink, c, g
	}
	check := func(t *testing.T, c *core.Coordinator[coretest.Body], id core.OperationID, deferred time.Time) {
		t.Helper()
		time.Sleep(time.Minute)
		s := checkStatus(t, c, id, core.StatusSucceeded)
		checkEqual(t, "deferred for", s.Started.Sub(deferred), 5*time.Second)
		checkEqual(t, "forced", c.Stats().Forced, 1)
	}
	t.Run("first", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			sink, c, g := setup(t, "")
			id := enqueue(t, c, quick)
			time.Sleep(time.Hour)
			sink.Raise("busy")
			deferred := time.Now()
			g.open()
			check(t, c, id, deferred)
		})
	})
	t.Run("again, after a retraction", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			sink, c, g := setup(t, "")
			id := enqueue(t, c, quick)
			sink.Raise("busy")
			sink.Retract("busy")
			time.Sleep(time.Hour)
			sink.Raise("busy")
			deferred := time.Now()
			g.open()
			check(t, c, id, deferred)
		})
	})
	// The first deferral ended with its lease, although nobody had reason to look.
	t.Run("again, after a lease", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			sink, c, g := setup(t, "")
			id := enqueue(t, c, quick)
			sink.Hold("busy", "", time.Second)
			time.Sleep(time.Hour)
			sink.Hold("busy", "", 0)
			deferred := time.Now()
			g.open()
			check(t, c, id, deferred)
		})
	})
	// A resume ended the first deferral, though its signal is still there.
	t.Run("again, after a resume", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			sink, c, g := setup(t, "resume")
			id := enqueue(t, c, quick)
			sink.Raise("busy")
			sink.Raise("resume")
			time.Sleep(time.Hour)
			sink.Raise("busy")
			deferred := time.Now()
			g.open()
			check(t, c, id, deferred)
		})
	})
}

// Weak point 6.6: the cancel check is not repeated after a defer wait.
func TestCancelOnAfterDeferral(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, DeferOn: "busy", CancelOn: "stop", MaxDefer: -1})
		release := sink.Hold("busy", "", 0)
		id := enqueue(t, c, quick)
		synctest.Wait()
		sink.Raise("stop")
		release()
		synctest.Wait()
		checkStatus(t, c, id, core.StatusRefused)
	})
}

// Weak point 5.7: an item already waiting for a defer still starts after Pause
// returned.
func TestPauseWhileDeferred(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, DeferOn: "busy", MaxDefer: time.Second})
		sink.Raise("busy")
		id := enqueue(t, c, quick)
		synctest.Wait()
		c.Pause()
		time.Sleep(time.Hour)
		checkStatus(t, c, id, core.StatusPending)
		c.Resume()
		synctest.Wait()
		checkStatus(t, c, id, core.StatusSucceeded)
	})
}

func TestCancelWhileDeferred(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, DeferOn: "busy", MaxDefer: time.Minute})
		sink.Raise("busy")
		first, second := enqueue(t, c, quick), enqueue(t, c, quick)
		if !c.Cancel(first, errOnPurpose) {
			t.Error("Cancel of a deferred operation: got false, want true")
		}
		checkError(t, "Wait", c.Wait(t.Context(), first), errOnPurpose)
		begun := time.Now()
		checkError(t, "Drain", c.Drain(t.Context()), nil) // waits for the other
		checkEqual(t, "Drain took", time.Since(begun), time.Minute)
		checkStatus(t, c, second, core.StatusSucceeded)
	})
}

// Weak point 6.9: an idle coordinator never reacts, and targeted drains compare
// the wrong ids.
func TestDrainOn(t *testing.T) {
	for _, test := range []struct {
		name, key string
		want      bool
	}{
		{"drain.now", "", true},
		{"drain.now", "orders", true},
		{"drain.now", "ord*, payments", true},
		{"drain.now", "payments", false},
		{"other", "", false},
	} {
		t.Run(test.name+" "+test.key, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sink := core.NewSink(core.SinkOptions{})
				c := bodies(t, core.Options{Sink: sink, Name: "orders", DrainOn: "drain.*"})
				id := enqueue(t, c, func(ctx context.Context) error { time.Sleep(time.Second); return nil })
				synctest.Wait()
				sink.RaiseKey(test.name, test.key)
				checkEqual(t, "closed", c.Stats().Closed, test.want)
				time.Sleep(time.Second)
				synctest.Wait()
				checkStatus(t, c, id, core.StatusSucceeded) // accepted work is done
			})
		})
	}
}

// Law 1: nothing runs or ends because a signal was raised, unless told so.
func TestNoDrainByDefault(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink})
		sink.Raise("coordinator.drain.all")
		checkEqual(t, "closed", c.Stats().Closed, false)
	})
}

// The sink does not keep a finished coordinator alive, nor what it would heed.
func TestDetachedWhenDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Sink: sink, DeferOn: "busy", MaxDefer: -1})
		release := sink.Hold("busy", "", 0)
		id := enqueue(t, c, quick)
		c.Complete() // still heeds the signal, for what it has accepted
		synctest.Wait()
		checkStatus(t, c, id, core.StatusPending)
		release()
		synctest.Wait()
		checkStatus(t, c, id, core.StatusSucceeded)
	})
}
