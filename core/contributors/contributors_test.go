package contributors_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/contributors"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("on purpose")

func newTracker(t *testing.T, opts contributors.Options, names ...string) *contributors.Tracker[int] {
	t.Helper()
	tracker, err := contributors.New[int](names, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

// text returns a snapshot as text: "a=1 b:error; c d".
func text(s contributors.Snapshot[int]) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(s.Results)) {
		words = append(words, fmt.Sprint(name, "=", s.Results[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Failures)) {
		words = append(words, fmt.Sprint(name, ":", s.Failures[name]))
	}
	return strings.Join(words, " ") + "; " + strings.Join(s.Pending, " ")
}

// waiting is a Wait on its own goroutine.
type waiting struct {
	mu   sync.Mutex
	done bool
	s    contributors.Snapshot[int]
	err  error
}

func wait(ctx context.Context, tracker *contributors.Tracker[int], required int) *waiting {
	w := &waiting{}
	go func() {
		s, err := tracker.Wait(ctx, required)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done, w.s, w.err = true, s, err
	}()
	synctest.Wait()
	return w
}

// is checks the state of a Wait: "waits", or its result.
func (w *waiting) is(t *testing.T, want string, wantErr error) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := "waits"
	if w.done {
		got = text(w.s)
	}
	coretest.Check(t, got == want, "got %q, want %q", got, want)
	coretest.Check(t, errors.Is(w.err, wantErr), "got error %v, want %v", w.err, wantErr)
}

// Fault avoided: after a wait that timed out every later wait returns the old result at
// once, and a second waiter overwrites the number the first one waits for.
func TestWaitersDoNotDisturbEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := newTracker(t, contributors.Options{}, "a", "b", "c", "d")
		impatient, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		gaveUp := wait(impatient, tracker, 2)
		one, three, four := wait(t.Context(), tracker, 1), wait(t.Context(), tracker, 3), wait(t.Context(), tracker, 4)
		tracker.Complete("c", 3)
		one.is(t, "c=3; a b d", nil)
		gaveUp.is(t, "waits", nil)
		time.Sleep(time.Second)
		gaveUp.is(t, "c=3; a b d", errOnPurpose)
		wait(impatient, tracker, 2).is(t, "c=3; a b d", errOnPurpose)
		wait(impatient, tracker, 1).is(t, "c=3; a b d", nil) // is so already

		two := wait(t.Context(), tracker, 2)
		two.is(t, "waits", nil)
		tracker.Fail("b", errOnPurpose)
		two.is(t, "waits", nil)
		three.is(t, "waits", nil)
		four.is(t, "c=3 b:on purpose; a d", errOnPurpose)
		tracker.Complete("a", 1)
		two.is(t, "a=1 c=3 b:on purpose; d", nil)
		three.is(t, "waits", nil)
		tracker.Complete("d", 4)
		three.is(t, "a=1 c=3 d=4 b:on purpose; ", nil)
		wait(t.Context(), tracker, 1).is(t, "a=1 c=3 d=4 b:on purpose; ", nil)
	})
}

// Fault avoided: a quorum that failures had made unreachable still waited for the time-out.
func TestUnreachableIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := newTracker(t, contributors.Options{}, "a", "b", "c")
		w := wait(t.Context(), tracker, 2)
		tracker.Fail("c", errOnPurpose)
		w.is(t, "waits", nil)
		tracker.Fail("a", nil)
		w.is(t, "a:contributors: no reason was given c:on purpose; b", errOnPurpose)
		w.is(t, "a:contributors: no reason was given c:on purpose; b", contributors.ErrUnreachable)

		s, err := tracker.Wait(t.Context(), 3)
		if got, want := err.Error(), "contributors: 3 of 3 cannot complete any more because 2 failed: a: contributors: no reason was given; c: on purpose"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := text(s), "a:contributors: no reason was given c:on purpose; b"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		wait(t.Context(), tracker, 1).is(t, "waits", nil)
		tracker.Complete("b", 0) // so that the wait ends
	})
}

// Fault avoided: Complete after Fail, or the reverse, counts in both.
func TestEachHasOneOutcome(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	tracker := newTracker(t, contributors.Options{Sink: sink}, "a", "b", "a")
	facts := coretest.Watch(t, sink, "*")
	check := func(got, want error) {
		t.Helper()
		coretest.Check(t, errors.Is(got, want), "got %v, want %v", got, want)
	}
	check(tracker.Complete("a", 1), nil)
	check(tracker.Complete("a", 2), contributors.ErrSettled)
	check(tracker.Fail("a", errOnPurpose), contributors.ErrSettled)
	check(tracker.Fail("b", errOnPurpose), nil)
	check(tracker.Fail("b", nil), contributors.ErrSettled)
	check(tracker.Complete("b", 3), contributors.ErrSettled)
	coretest.Check(t, tracker.Complete("c", 3) != nil, "an unknown name is accepted")
	coretest.Check(t, tracker.Fail("", errOnPurpose) != nil, "an unknown name is accepted")
	if got, want := text(tracker.Snapshot()), "a=1 b:on purpose; "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	raised := facts.ExpectExactly(contributors.SignalCompleted, contributors.SignalFailed)
	if got, want := raised[0].Key+raised[1].Key, "ab"; got != want {
		t.Errorf("got signals with the keys %q, want %q", got, want)
	}
}

// Fault avoided: nil results are left out.
func TestZeroResultsAreResults(t *testing.T) {
	tracker, err := contributors.New[any]([]string{"a", "b"}, contributors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tracker.Complete("b", nil)
	coretest.Check(t, tracker.Sink().Has(contributors.SignalCompleted), "got no signal on the tracker's own sink, want one")
	s, err := tracker.Wait(t.Context(), 1)
	if result, ok := s.Results["b"]; err != nil || !ok || result != nil || len(s.Results) != 1 {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestSnapshotsAreCopies(t *testing.T) {
	tracker := newTracker(t, contributors.Options{}, "a", "b", "c")
	tracker.Complete("a", 1)
	tracker.Fail("b", errOnPurpose)
	s := tracker.Snapshot()
	delete(s.Results, "a")
	delete(s.Failures, "b")
	s.Pending[0] = "z"
	if got, want := text(tracker.Snapshot()), "a=1 b:on purpose; c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := len(tracker.Snapshot().Failures); got != 1 {
		t.Errorf("got %d failures, want 1", got)
	}
}

// Fault avoided: checking and setting the outcome are not atomic.
func TestConcurrentOutcomes(t *testing.T) {
	const contributing, reporting, required = 20, 4, 8
	var names []string
	for i := range contributing {
		names = append(names, fmt.Sprint(i))
	}
	for seed := range uint64(20) {
		sink := signals.NewSink(signals.SinkOptions{})
		tracker := newTracker(t, contributors.Options{Sink: sink}, names...)
		var all sync.WaitGroup
		var accepted atomic.Int64
		for i := range uint64(reporting) {
			all.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, i))
				for _, n := range rnd.Perm(contributing) {
					err := errOnPurpose
					if rnd.Uint64N(20) < seed {
						err = tracker.Fail(names[n], err)
					} else {
						err = tracker.Complete(names[n], n)
					}
					if err == nil {
						accepted.Add(1)
					}
				}
			})
			all.Go(func() {
				s, err := tracker.Wait(t.Context(), required)
				reached := len(s.Results) >= required
				possible := contributing-len(s.Failures) >= required
				got := []any{reached, possible, len(s.Results) + len(s.Failures) + len(s.Pending)}
				want := []any{err == nil, err == nil, contributing}
				coretest.Check(t, slices.Equal(got, want), "%q, %v: got reached, possible and all %v, want %v", text(s), err, got, want)
			})
		}
		all.Wait()
		s := tracker.Snapshot()
		got := []int{len(s.Results), len(s.Failures), len(s.Results) + len(s.Failures), len(s.Pending)}
		want := []int{sink.Count(contributors.SignalCompleted), sink.Count(contributors.SignalFailed), int(accepted.Load()), 0}
		coretest.Check(t, slices.Equal(got, want), "got %v completed, failed, settled and pending, want %v", got, want)
	}
}

// A handler of an outcome may report and wait.
func TestHandlersMayCallBack(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	tracker := newTracker(t, contributors.Options{Sink: sink}, "a", "b")
	sink.Subscribe(contributors.SignalCompleted, func(s signals.Signal) {
		if s.Key == "a" {
			tracker.Fail("b", errOnPurpose)
			if _, err := tracker.Wait(t.Context(), 1); err != nil {
				t.Error(err)
			}
		}
	})
	tracker.Complete("a", 1)
	if got, want := text(tracker.Snapshot()), "a=1 b:on purpose; "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBadNumbersAndNames(t *testing.T) {
	tracker := newTracker(t, contributors.Options{}, "a", "b", "a")
	for _, required := range []int{-1, 0, 3} {
		_, err := tracker.Wait(t.Context(), required)
		coretest.Check(t, strings.Contains(fmt.Sprint(err), fmt.Sprintf("contributors: %d of 2 are required", required)), "got %v, want that %d of 2 cannot be", err, required)
	}
	for want, names := range map[string][]string{
		"there are no names": nil,
		`name 2 of 3 is ""`:  {"a", "", "b"},
	} {
		tracker, err := contributors.New[int](names, contributors.Options{})
		coretest.Check(t, tracker == nil, "got %v, want none", tracker)
		coretest.Check(t, strings.HasPrefix(fmt.Sprint(err), "contributors: "+want), "got error %v, want %q", err, want)
	}
}
