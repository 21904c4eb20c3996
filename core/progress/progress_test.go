package progress_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func newReporter(t *testing.T, on signals.Raiser, total int64, opts progress.Options) *progress.Reporter {
	t.Helper()
	p, err := progress.New(on, "job", total, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// expect checks the reports; the last one ends with "!".
func expect(t *testing.T, sink *signals.Sink, want ...string) {
	t.Helper()
	var got []string
	for s, r := range progress.Reports.Sense(sink, signals.Query{}) {
		text := r.String()
		if r.Done {
			text += "!"
		}
		coretest.Check(t, s.Name+" "+s.Key == "progress job", "got signal %s with key %q, want that of progress with the key job", s.Name, s.Key)
		got = append(got, text)
	}
	coretest.Check(t, slices.Equal(got, want), "reported\n got %q\nwant %q", got, want)
}

func TestEveryStep(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	p := newReporter(t, sink, 10, progress.Options{})
	p.Add(1)
	p.Add(0)
	p.Add(3)
	p.Set(2) // ignored, because it would go back
	p.Add(-1)
	p.Set(9)
	p.Set(9)
	if got, want := p.Report(), (progress.Report{Current: 9, Total: 10}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	p.Add(5)
	p.Add(1)
	p.Done()
	p.Set(11)
	expect(t, sink, "1/10", "4/10", "9/10", "10/10!")
	page, err := json.Marshal(progress.All(sink))
	if want := `{"job":{"current":10,"total":10,"done":true}}`; string(page) != want || err != nil {
		t.Errorf("got %s, %v, want %s", page, err, want)
	}
}

// Every n-th step is reported, and the end: reaching the total, or Done.
func TestEveryNthStepAndTheEnd(t *testing.T) {
	const done = 0
	for _, c := range []struct {
		total    int64
		every    int
		steps    []int64
		fraction float64
		want     []string
	}{
		{12, 5, slices.Repeat([]int64{1}, 20), 1, []string{"5/12", "10/12", "12/12!"}},
		{12, 6, slices.Repeat([]int64{1}, 20), 1, []string{"6/12", "12/12!"}},
		{12, 99, slices.Repeat([]int64{1}, 20), 1, []string{"12/12!"}},
		{12, -1, slices.Repeat([]int64{1}, 20), 1, []string{"12/12!"}},
		{0, 2, []int64{10, 10, 10, done, done, 10}, 1, []string{"20", "30!"}},
		{0, 2, []int64{10, 10, 10}, 0, []string{"20"}},
		{10, 100, []int64{4, done, 6}, 0.4, []string{"4/10!"}},
		{0, 4, []int64{math.MaxInt64 - 1, math.MaxInt64, math.MinInt64, 1, done}, 1, []string{"9223372036854775807!"}},
	} {
		sink := signals.NewSink(signals.SinkOptions{})
		p := newReporter(t, sink, c.total, progress.Options{Every: c.every})
		for _, n := range c.steps {
			if n == done {
				p.Done()
			} else {
				p.Add(n)
			}
		}
		expect(t, sink, c.want...)
		if got := p.Report().Fraction(); got != c.fraction {
			t.Errorf("%+v: got fraction %v", c, got)
		}
	}
}

func TestMinInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		p := newReporter(t, sink, 8, progress.Options{Every: 2, MinInterval: time.Second})
		p.Add(1)
		p.Add(1) // reported
		p.Add(1)
		time.Sleep(time.Second - 1)
		p.Add(1) // too soon
		time.Sleep(time.Nanosecond)
		p.Add(1) // the first of the next two
		p.Add(1) // reported
		p.Add(2) // the end
		expect(t, sink, "2/8", "6/8", "8/8!")
	})
}

// Reports never go back. The last one is the end. At most one of n steps is reported.
func TestConcurrentSteps(t *testing.T) {
	const workers, steps, every = 8, 200, 10
	sink := signals.NewSink(signals.SinkOptions{Capacity: 10000})
	var order []progress.Report // without a lock: handlers run one at a time, or the race detector fails
	progress.Reports.Subscribe(sink, func(_ signals.Signal, r progress.Report) {
		order = append(order, r)
		runtime.Gosched()
	})
	p := newReporter(t, sink, workers*steps, progress.Options{Every: every})
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range steps {
				p.Add(1)
				if rand.IntN(10) == 0 {
					runtime.Gosched()
				}
			}
			p.Done() // the first Done is the end
		})
	}
	all.Wait()
	if len(order) == 0 || len(order) > workers*steps/every+1 {
		t.Fatalf("got %d reports", len(order))
	}
	last := order[len(order)-1]
	end := p.Report()
	end.Done = true
	coretest.Check(t, last == end, "last reported %+v, want %+v", last, end)
	for i := 1; i < len(order); i++ {
		r, before := order[i], order[i-1]
		coretest.Check(t, r.Current >= before.Current && (r.Current != before.Current || r.Done) && !before.Done, "reported %+v after %+v", r, before)
	}
	latest, _ := newest(sink)
	coretest.Check(t, latest == last, "latest: got %+v, want %+v", latest, last)
}

// A handler that blocks holds up the goroutine that reports, not the others.
func TestSlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		free := make(chan struct{})
		sink.Subscribe("progress", func(signals.Signal) { <-free })
		p := newReporter(t, sink, 100, progress.Options{})
		go p.Add(1)
		synctest.Wait()
		for range 50 {
			p.Add(1)
		}
		p.Done()
		expect(t, sink, "1/100")
		close(free)
		synctest.Wait()
		expect(t, sink, "1/100", "51/100!")
	})
}

// A handler may go on with the work it receives, and even end its goroutine.
func TestHandlersThatCallBack(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	p := newReporter(t, sink, 4, progress.Options{})
	cancel := progress.Reports.Subscribe(sink, func(_ signals.Signal, r progress.Report) {
		p.Add(1)
		coretest.Check(t, p.Report().Current == min(4, r.Current+1), "got %v inside of %v", p.Report(), r)
	})
	p.Add(1)
	cancel()
	expect(t, sink, "1/4", "2/4", "3/4", "4/4!")
}

// A handler that takes a step for every report does not loop for ever, and the end is still
// reported.
func TestEndlessHandler(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	p := newReporter(t, sink, 0, progress.Options{})
	progress.Reports.Subscribe(sink, func(signals.Signal, progress.Report) { p.Add(1) })
	p.Add(1)
	reported := sink.Count("progress")
	if latest, _ := newest(sink); reported < 2 || reported > 64 || latest.Done {
		t.Errorf("got %d reports, latest %+v", reported, latest)
	}
	p.Done()
	if latest, _ := newest(sink); latest != p.Report() || !latest.Done {
		t.Errorf("latest %+v, stands at %+v", latest, p.Report())
	}
}

// Code that reports may be called outside of an operation.
func TestOutsideAnOperation(t *testing.T) {
	p := newReporter(t, core.OperationFrom(context.Background()), 2, progress.Options{})
	p.Add(1)
	p.Done()
}

func TestNew(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	var none *signals.Sink
	for want, c := range map[string]struct {
		on    signals.Raiser
		name  string
		total int64
		opts  progress.Options
	}{
		"the raiser is nil":           {nil, "job", 1, progress.Options{}},
		"the raiser is nil, but":      {none, "job", 1, progress.Options{}},
		"the name is":                 {sink, "", 1, progress.Options{}},
		"the total is -1":             {sink, "job", -1, progress.Options{}},
		"Options.MinInterval is -1ns": {sink, "job", 1, progress.Options{MinInterval: -1}},
	} {
		p, err := progress.New(c.on, c.name, c.total, c.opts)
		coretest.Check(t, p == nil, "got %v, want none", p)
		coretest.Check(t, strings.HasPrefix(fmt.Sprint(err), "progress: "), "got error %v, want one of the package", err)
		coretest.Check(t, strings.Contains(fmt.Sprint(err), want), "got error %v, want %q", err, want)
	}
}

// newest returns the newest report of the reporter "job".
func newest(sink *signals.Sink) (progress.Report, bool) {
	report, ok := progress.All(sink)["job"]
	return report, ok
}
