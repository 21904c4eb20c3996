package aggregate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/aggregate"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var number = signals.NewKind[float64]("number")

func same(n float64) float64 { return n }

func newAggregator(t *testing.T, sink *signals.Sink, span time.Duration, opts aggregate.Options) *aggregate.Aggregator[float64] {
	t.Helper()
	a, err := aggregate.New(sink, number, span, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Stop)
	return a
}

// expect checks a summary: count, sum and what it covers.
func expect(t *testing.T, a *aggregate.Aggregator[float64], count int, sum float64, covered time.Duration, complete bool) {
	t.Helper()
	s := a.Summarize(same)
	if s.Count != count || s.Sum != sum || s.Covered != covered || s.Complete != complete {
		t.Errorf("got %d with sum %v, covering %v, %v\nwant %d with sum %v, covering %v, %v",
			s.Count, s.Sum, s.Covered, s.Complete, count, sum, covered, complete)
	}
}

func TestSlidingSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		number.Raise(sink, "", 1000) // before the aggregator
		a := newAggregator(t, sink, 10*time.Second, aggregate.Options{})
		expect(t, a, 0, 0, 0, false)
		number.Raise(sink, "", 1)
		time.Sleep(time.Second)
		number.Raise(sink, "", 2)
		sink.Raise("number") // without one
		signals.NewKind[string]("number").Raise(sink, "", "three")
		signals.NewKind[float64]("number.other").Raise(sink, "", 4)
		expect(t, a, 2, 3, time.Second, false)
		time.Sleep(9*time.Second - 1)
		expect(t, a, 2, 3, 10*time.Second-1, false)
		time.Sleep(time.Nanosecond)
		expect(t, a, 1, 2, 10*time.Second, true)
		time.Sleep(time.Second)
		expect(t, a, 0, 0, 10*time.Second, true)
		number.Raise(sink, "", 5)
		expect(t, a, 1, 5, 10*time.Second, true)
	})
}

func TestWhatIsTakenBackDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		a := newAggregator(t, sink, time.Minute, aggregate.Options{})
		number.Raise(sink, "", 1)
		sink.Retract("num*")
		number.Raise(sink, "", 2)
		sink.Forget(signals.Query{Pattern: "*"}) // is no retraction
		expect(t, a, 1, 2, 0, false)
	})
}

// Fault avoided: the sink keeps less than the window, so that a sum over five minutes
// silently covers less.
func TestTheWindowOfTheSinkDoesNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 5, MaxAge: time.Second})
		a := newAggregator(t, sink, 5*time.Minute, aggregate.Options{})
		for range 600 {
			number.Raise(sink, "", 1)
			time.Sleep(time.Second)
		}
		expect(t, a, 299, 299, 5*time.Minute, true) // the first of 300 is as old as the span
	})
}

func TestSummary(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	a := newAggregator(t, sink, time.Hour, aggregate.Options{})
	if s := a.Summarize(same); s.Count != 0 || s.Mean != 0 || s.Quantile(0.5) != 0 {
		t.Errorf("got %+v of nothing", s)
	}
	for _, n := range []float64{-1, 7, 3, math.NaN(), 3} {
		number.Raise(sink, "", n)
	}
	s := a.Summarize(same)
	for q, want := range map[float64]float64{0: -1, 0.25: -1, 0.26: 3, 0.5: 3, 0.75: 3, 0.76: 7, 1: 7} {
		if got := s.Quantile(q); got != want {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	s.Covered = time.Second
	text, err := json.Marshal(s)
	if want := `{"count":4,"sum":12,"mean":3,"covered":1000000000,"complete":false}`; string(text) != want || err != nil {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

// The quantile is the least number whose rank, divided by the count, is at least q. The
// test uses every q of this form.
func TestQuantilesAreExact(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	a := newAggregator(t, sink, time.Hour, aggregate.Options{})
	for n := 1; n <= 100; n++ {
		number.Raise(sink, "", float64(n))
		s := a.Summarize(same)
		for i := 1; i <= n; i++ {
			if got := s.Quantile(float64(i) / float64(n)); got != float64(i) {
				t.Fatalf("%d of %d: got %v", i, n, got)
			}
		}
	}
}

func TestGroupBy(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	a := newAggregator(t, sink, time.Hour, aggregate.Options{})
	for i := range 10 {
		number.Raise(sink, fmt.Sprint("key-", i%2), float64(i))
	}
	number.Raise(sink, "nothing", math.NaN())
	groups := aggregate.GroupBy(a, func(s signals.Signal, _ float64) string { return s.Key }, same)
	if even, odd := groups["key-0"], groups["key-1"]; len(groups) != 2 || even.Sum != 20 || odd.Sum != 25 || odd.Count != 5 || odd.Quantile(0.5) != 5 {
		t.Errorf("got %+v", groups)
	}
}

// The functions may call anything, because no lock is held.
func TestFunctionsMayCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		a := newAggregator(t, sink, time.Hour, aggregate.Options{})
		number.Raise(sink, "", 1)
		number.Raise(sink, "", 2)
		value := func(n float64) float64 {
			number.Raise(sink, "", n)
			a.Stop()
			return n
		}
		if s := a.Summarize(value); s.Sum != 3 {
			t.Errorf("got %+v", s)
		}
		expect(t, a, 0, 0, 0, false)
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		a := newAggregator(t, sink, time.Hour, aggregate.Options{})
		number.Raise(sink, "", 1)
		time.Sleep(time.Hour)
		number.Raise(sink, "", 1)
		expect(t, a, 1, 1, time.Hour, true)
		defer number.Subscribe(sink, func(signals.Signal, float64) { a.Stop() })()
		number.Raise(sink, "", 1)
		a.Stop()
		number.Raise(sink, "", 1)
		time.Sleep(time.Hour)
		expect(t, a, 0, 0, 0, false)
	})
}

func TestConcurrentUse(t *testing.T) {
	const raisers, each = 4, 500
	sink := signals.NewSink(signals.SinkOptions{})
	a := newAggregator(t, sink, time.Hour, aggregate.Options{})
	var all sync.WaitGroup
	for range raisers {
		all.Go(func() {
			for i := range each {
				number.Raise(sink, "", 1)
				if i%100 == 0 {
					a.Summarize(same)
				}
			}
		})
	}
	all.Wait()
	if s := a.Summarize(same); s.Count != raisers*each {
		t.Errorf("got %d, want %d", s.Count, raisers*each)
	}
}

func TestNew(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	for want, c := range map[string]struct {
		sink *signals.Sink
		kind signals.Kind[float64]
		span time.Duration
		opts aggregate.Options
	}{
		"the sink is nil":           {nil, number, time.Second, aggregate.Options{}},
		"the kind is the zero Kind": {sink, signals.Kind[float64]{}, time.Second, aggregate.Options{}},
		"the span is 0s":            {sink, number, 0, aggregate.Options{}},
		"Options.Capacity is -1":    {sink, number, time.Second, aggregate.Options{Capacity: -1}},
	} {
		a, err := aggregate.New(c.sink, c.kind, c.span, c.opts)
		coretest.Check(t, a == nil, "got %v, want none", a)
		coretest.Check(t, strings.HasPrefix(fmt.Sprint(err), "aggregate: "), "got error %v, want one of the package", err)
		coretest.Check(t, strings.Contains(fmt.Sprint(err), want), "got error %v, want %q", err, want)
	}
}

func TestMistakesPanic(t *testing.T) {
	a := newAggregator(t, signals.NewSink(signals.SinkOptions{}), time.Second, aggregate.Options{})
	for what, call := range map[string]func(){
		"Summarize":      func() { a.Summarize(nil) },
		"GroupBy, group": func() { aggregate.GroupBy[float64, string](a, nil, same) },
		"GroupBy, value": func() { aggregate.GroupBy(a, func(signals.Signal, float64) int { return 0 }, nil) },
		"Quantile, 1.1":  func() { aggregate.Summary{}.Quantile(1.1) },
		"Quantile, -1":   func() { aggregate.Summary{}.Quantile(-1) },
		"Quantile, NaN":  func() { aggregate.Summary{}.Quantile(math.NaN()) },
	} {
		func() {
			defer func() {
				name, _, _ := strings.Cut(what, ",")
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "aggregate: "+name) {
					t.Errorf("%s: got %q", what, text)
				}
			}()
			call()
		}()
	}
}
