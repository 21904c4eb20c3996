package reputation_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/reputation"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func newScores(t *testing.T, opts reputation.Options) *reputation.Scores[string] {
	t.Helper()
	if opts.HalfLife == 0 {
		opts.HalfLife = time.Minute
	}
	s, err := reputation.New[string](opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func count(s *reputation.Scores[string]) (n int) {
	for range s.All() {
		n++
	}
	return n
}

func check(t *testing.T, what string, got, want float64) {
	t.Helper()
	coretest.Check(t, math.Abs(got-want) <= 1e-12*math.Abs(want), "%s: got %v, want %v", what, got, want)
}

// Fault avoided: entries never expire by decay.
func TestFadedScoresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScores(t, reputation.Options{HalfLife: time.Second, Floor: 1})
		s.Update("a", 8)
		s.Update("b", -8)
		s.Update("c", 0.9)
		s.Update("d", 0)
		if got := count(s); got != 2 {
			t.Errorf("got %d scores, want 2", got)
		}
		time.Sleep(3 * time.Second)
		check(t, "at the floor", s.Score("b"), -1)
		time.Sleep(time.Nanosecond)
		check(t, "below it", s.Score("b"), 0)
		if got := count(s); got != 0 {
			t.Errorf("got %d scores, want 0", got)
		}
		coretest.Check(t, !s.Invalidate("a"), "there was one to invalidate")
		check(t, "starts again", s.Update("a", 2), 2)

		for floor, want := range map[float64]int{0: 0, -1: 1} {
			s := newScores(t, reputation.Options{HalfLife: time.Second, Floor: floor})
			s.Update("a", 1)
			time.Sleep(10 * time.Second) // 0.00098
			if got := count(s); got != want {
				t.Errorf("floor %v: got %d, want %d", floor, got, want)
			}
			time.Sleep(2000 * time.Second)
			if got := count(s); got != 0 {
				t.Errorf("floor %v: got %d, want none: it is exactly 0", floor, got)
			}
		}
	})
}

// Fault avoided: not-a-number is accepted.
func TestNotANumberIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		s := newScores(t, reputation.Options{Sink: sink})
		s.Update("a", 3)
		facts := coretest.Watch(t, sink, "*")
		for _, delta := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			check(t, fmt.Sprint(delta), s.Update("a", delta), 3)
			check(t, fmt.Sprint(delta), s.Update("b", delta), 0)
		}
		facts.None()
		if got := count(s); got != 1 {
			t.Errorf("got %d scores, want 1", got)
		}
		s.Update("a", math.MaxFloat64)
		check(t, "largest", s.Update("a", math.MaxFloat64), math.MaxFloat64)
		check(t, "smallest", s.Update("b", -math.MaxFloat64), -math.MaxFloat64)
		check(t, "smallest", s.Update("b", -math.MaxFloat64), -math.MaxFloat64)
	})
}

// Fault avoided: the score is text in the signal's name, with a decimal separator that
// depends on the locale.
func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type UserID string
		sink := signals.NewSink(signals.SinkOptions{})
		s, err := reputation.New[UserID](reputation.Options{HalfLife: time.Second, Sink: sink})
		if err != nil {
			t.Fatal(err)
		}
		s.Update("ann", 1.5)
		s.Update("ann", 1.5)
		time.Sleep(time.Second)
		coretest.Check(t, s.Invalidate("ann"), "there was nothing to invalidate")
		s.Invalidate("bob")
		var got []string
		for _, kind := range []signals.Kind[float64]{reputation.Updates, reputation.Invalidations} {
			for signal, score := range kind.Sense(sink, signals.Query{}) {
				got = append(got, fmt.Sprint(signal.Name, " ", signal.Key, " ", score))
			}
		}
		want := []string{
			"reputation.updated ann 1.5", "reputation.updated ann 3",
			"reputation.invalidated ann 1.5", "reputation.invalidated bob 0",
		}
		coretest.Check(t, slices.Equal(got, want), "got %q\nwant %q", got, want)
		check(t, "invalidated", s.Score("ann"), 0)
	})
}

// Handlers may update the scores that they receive.
func TestHandlersMayCallBack(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	s := newScores(t, reputation.Options{Sink: sink, HalfLife: 1000 * time.Hour})
	reputation.Updates.Subscribe(sink, func(signal signals.Signal, score float64) {
		if score > 2 {
			s.Invalidate(signal.Key)
		}
	})
	for range 3 {
		s.Update("a", 1)
	}
	if got := s.Score("a"); got != 0 {
		t.Errorf("got %v", got)
	}
}

func TestAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScores(t, reputation.Options{})
		for key, score := range map[string]float64{"a": 2, "b": -4, "c": 6, "d": 2} {
			s.Update(key, score)
		}
		time.Sleep(time.Minute)
		got := ""
		for key, score := range s.All() {
			s.Invalidate(key)
			if got += fmt.Sprint(key, score, " "); key == "d" {
				break
			}
		}
		coretest.Check(t, got == "c3 a1 d1 ", "got %q, want the highest first", got)
		if got := count(s); got != 1 {
			t.Errorf("got %d left, want 1", got)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	s := newScores(t, reputation.Options{Capacity: 10, HalfLife: 1000 * time.Hour})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 200 {
				s.Update(fmt.Sprint(n%20), float64(i+1))
				s.Score(fmt.Sprint(n % 7))
				if n%50 == 0 {
					s.Invalidate(fmt.Sprint(n % 20))
					for range s.All() {
					}
				}
			}
		})
	}
	all.Wait()
	got := count(s)
	coretest.Check(t, got == 10, "got %d scores, want the capacity, 10", got)
}

func TestOptions(t *testing.T) {
	many := newScores(t, reputation.Options{})
	for i := range 1025 {
		many.Update(fmt.Sprint(i), 1)
	}
	if got := count(many); got != 1024 {
		t.Errorf("got %d scores, want the default capacity, 1024", got)
	}
	for want, opts := range map[string]reputation.Options{
		"Options.HalfLife is 0s":    {},
		"Options.HalfLife is -1ns":  {HalfLife: -1},
		"Options.Capacity is -1":    {HalfLife: 1, Capacity: -1},
		"Options.Floor is NaN":      {HalfLife: 1, Floor: math.NaN()},
		"must not be negative":      {HalfLife: 1, Capacity: -1},
		"Options.Floor is +Inf, bu": {HalfLife: 1, Floor: math.Inf(1)},
	} {
		s, err := reputation.New[string](opts)
		coretest.Check(t, s == nil, "got %v, want none", s)
		coretest.Check(t, strings.HasPrefix(fmt.Sprint(err), "reputation: "), "got error %v, want one of the package", err)
		coretest.Check(t, strings.Contains(fmt.Sprint(err), want), "got error %v, want %q", err, want)
	}
}
