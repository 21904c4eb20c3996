package bench

import (
	"context"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Every row is well-formed, every side of it runs, and our side allocates no more than
// the row allows.
func TestRows(t *testing.T) {
	smaller(t)
	groups := map[string]bool{}
	for _, group := range Groups() {
		coretest.Check(t, !groups[group.Name], "two groups are called %s", group.Name)
		coretest.Check(t, group.Measures != "", "group %s does not say what it measures", group.Name)
		groups[group.Name] = true
		t.Run(group.Name, func(t *testing.T) {
			names := map[string]bool{}
			for _, row := range group.Rows() {
				coretest.Check(t, !names[row.Name], "two rows are called %s", row.Name)
				names[row.Name] = true
				testRow(t, row)
			}
		})
	}
}

// smaller makes large windows and caches smaller during the test. Their size does not
// change what rows do.
func smaller(t *testing.T) {
	window, cache := large, cacheSize
	large, cacheSize = 10*small, 1<<10
	t.Cleanup(func() { large, cacheSize = window, cache })
}

func testRow(t *testing.T, row Row) {
	if len(row.Sides) < 2 || !strings.HasPrefix(row.Sides[0].Name, "ours") || row.Sides[0].Goal != 0 {
		t.Errorf("%s does not compare ours with something", row.Name)
	}
	some, runs := 20, 1
	if os.Getenv("EPHEMERAL_LONG") != "" {
		some, runs = 100, 5
	}
	for i, side := range row.Sides {
		if coretest.Race && i > 0 {
			break // other libraries would take minutes
		}
		body := side.New()
		for _, n := range []int{0, 1, some} {
			body.Prepare(n)
			body.Run(n)
		}
		if i == 0 && row.MaxAllocs >= 0 && !coretest.Race {
			n := 10_000
			if row.MaxAllocs > 10 { // slow operations
				n = 1_000
			}
			got := testing.AllocsPerRun(runs, func() { body.Run(n) }) / float64(n)
			if got > row.MaxAllocs+0.05 { // goroutines of the runtime may allocate
				t.Errorf("%s: %.3f allocations per operation, %g are allowed", row.Name, got, row.MaxAllocs)
			}
		}
		body.Done()
	}
}

// Every side runs every operation, and never more at once than the limit.
func TestEverySideRunsEverything(t *testing.T) {
	var done, running, most atomic.Int64
	work := func() {
		now := running.Add(1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		runtime.Gosched()
		running.Add(-1)
		done.Add(1)
	}
	for _, producers := range []int{1, 64} {
		for _, side := range []Side{
			oursRun("ours", 0, producers, func(context.Context, int) error { work(); return nil }),
			concRun(0, producers, work),
			antsRun(0, producers, work),
			errgroupRun(0, producers, work),
			pondSubmit(0, producers, work),
			pondGo(0, producers, work),
		} {
			done.Store(0)
			most.Store(0)
			body := side.New()
			want := int64(0)
			for _, n := range []int{1, 63, 5000} {
				body.Run(n)
				want += int64(n)
				if got := done.Load(); got != want {
					t.Errorf("%s, %d producers: Run returned after %d operations, not %d", side.Name, producers, got, want)
				}
			}
			body.Done()
			if m := most.Load(); m > limit {
				t.Errorf("%s, %d producers: %d at once, the limit is %d", side.Name, producers, m, limit)
			}
		}
	}
}

// Every item goes through every stage.
func TestStagesRunEverything(t *testing.T) {
	var calls atomic.Int64
	work := func() { calls.Add(1) }
	for _, row := range stageRows(work) {
		for _, side := range row.Sides {
			calls.Store(0)
			body := side.New()
			const n = 500
			body.Run(n)
			if got := calls.Load(); got != stageCount*n {
				t.Errorf("%s, %s: %d bodies had run when Run returned, not %d", row.Name, side.Name, got, stageCount*n)
			}
			body.Done()
		}
	}
}

// Sides of rows for one core run with one core. After that GOMAXPROCS is restored.
func TestOnOneCore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	inside := 0
	body := onOneCore(loop("ours", 0, func(int) { inside = runtime.GOMAXPROCS(0) })).New()
	body.Run(1)
	if after := runtime.GOMAXPROCS(0); inside != 1 || after != 3 {
		t.Errorf("GOMAXPROCS is %d inside and %d afterwards", inside, after)
	}
}

// All ways to match give the same answers.
func TestMatchCasesAgree(t *testing.T) {
	for _, c := range matchCases {
		for _, name := range c.names {
			want := c.ways[0].match(c.ways[0].text, name)
			for _, way := range c.ways[1:] {
				if got := way.match(way.text, name); got != want {
					t.Errorf("%s, %q: ours %v, %s %v", c.row, name, want, way.name, got)
				}
			}
		}
	}
}

// Rows of the original have names of their own, and say why they do not exist here.
func TestOriginals(t *testing.T) {
	names := map[string]bool{}
	for _, o := range Originals() {
		coretest.Check(t, !names[o.Name] && o.Name != "", "two rows are called %q", o.Name)
		coretest.Check(t, o.New == nil && o.Note != "" || o.Ops > 0, "%s: no operations, and no reason", o.Name)
		names[o.Name] = true
	}
}

// An operation of a chain raises one signal, and one more in each handler.
func TestOriginalChains(t *testing.T) {
	for _, threads := range []int{1, 16} {
		s := signals.NewSink(signals.SinkOptions{})
		chain(s, 3)
		onThreads(threads, raiseInput)(s, 300)
		got := s.Stats().Raised
		coretest.Check(t, got == 4*300, "%d threads: %d raises in 300 chains of 3", threads, got)
	}
}

func TestCoordinatorTracksAndRaises(t *testing.T) {
	c := coordinator(raising, -1)
	defer closing(c)()
	const n = 5000
	for range n {
		if _, err := c.Enqueue(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s.Succeeded != n {
		t.Errorf("%d succeeded, not %d", s.Succeeded, n)
	}
	if got := c.Sink().Stats().Raised; got != n {
		t.Errorf("%d signals of %d operations", got, n)
	}
	if got := c.Count(names[0]); got < window { // signals of an evicted operation may still be there
		t.Errorf("%d signals of the %d operations in the window", got, window)
	}
}

func TestSinksHoldWhatTheRowsSay(t *testing.T) {
	smaller(t)
	for _, age := range []time.Duration{-1, 0, time.Hour} {
		for _, capacity := range []int{small, large} {
			s := sharedSink(capacity, age)()
			raiseNames(s, 100)
			if st := s.Stats(); st.Stored != capacity || st.Raised != uint64(capacity)+100 || st.Expired != 0 {
				t.Errorf("capacity %d, age %v: %+v", capacity, age, st)
			}
			if n := s.Count("file.saved.*"); n != capacity {
				t.Errorf("capacity %d, age %v: %d match", capacity, age, n)
			}
			for _, name := range names {
				coretest.Check(t, s.Has(name), "capacity %d, age %v: no %s", capacity, age, name)
			}
			coretest.Check(t, s.Monitor(names[0], age).Count() != 0, "capacity %d, age %v: the monitor counts nothing", capacity, age)
		}
	}
}

func TestOnlyTheMatchingSubscriberIsCalled(t *testing.T) {
	calls := 0
	s := subscribed(-1, 100, func(signals.Signal) { calls++ })
	raiseFirst(s, 50)
	coretest.Check(t, calls == 50, "%d calls for 50 signals", calls)

	table := newCallTable()
	for id := range uint32(10) {
		table.subscribe(id, func(e event) { calls += 1000 * int(e.id) })
	}
	table.subscribe(3, func(event) { calls++ })
	calls = 0
	table.publish(event{id: 3})
	table.publish(event{id: 77})
	coretest.Check(t, calls == 3001, "the call table called %d", calls)
}

// The 50 patterns listen, match none of the raised names, and end.
func TestAttachedPatternsListen(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	coretest.NothingLeft(t, s, func() {
		end := attach(s)
		before := s.Stats()
		if n := before.Handlers + before.Monitors; n < 38 { // the other 12 are gates
			t.Errorf("the patterns have %d handlers and monitors", n)
		}
		raiseNames(s, 100)
		if got := s.Stats().Raised - before.Raised; got != 100 {
			t.Errorf("%d signals of 100 raises", got)
		}
		end()
	})
}

// Unique names leave no memory behind, and no name is in the window twice.
func TestUniqueNames(t *testing.T) {
	list := uniqueNames(small)
	if len(list) < 2*small {
		t.Fatalf("%d names for a window of %d", len(list), small)
	}
	s := signals.NewSink(signals.SinkOptions{Capacity: small})
	raise := func(times int) {
		for i := range times * len(list) {
			s.Raise(list[i%len(list)])
		}
	}
	raise(1)
	before := heap()
	raise(100)
	after := heap()
	for _, name := range list[len(list)-small:] {
		if n := s.Count(name); n != 1 {
			t.Fatalf("%d of %s in the window", n, name)
		}
	}
	if grown := int64(after) - int64(before); grown > 256<<10 {
		t.Errorf("%d KiB are left behind", grown>>10)
	}
	runtime.KeepAlive(s)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Every cache has hits, and no cache has more than is possible.
func TestHitRatios(t *testing.T) {
	requests := 20_000
	if coretest.Race {
		requests = 5_000
	}
	for _, trace := range Traces() {
		ratios := trace.HitRatios(1000, requests)
		if len(ratios) != len(CacheNames()) {
			t.Fatalf("%d ratios of %d caches", len(ratios), len(CacheNames()))
		}
		for i, ratio := range ratios {
			hits := ratio > 0 || CacheNames()[i] == "ristretto" // ristretto drops entries while the machine is busy
			if ratio < 0 || ratio > 97 || !hits && trace.Name == "zipf 0.99" {
				t.Errorf("%s, %s: %.1f hits of a hundred", trace.Name, CacheNames()[i], ratio)
			}
		}
	}
}

func TestTraces(t *testing.T) {
	counts := map[int]int{}
	next := zipf(100, 1, 1)
	for range 100_000 {
		counts[next()]++
	}
	if r := float64(counts[0]) / float64(counts[9]); r < 8 || r > 12 {
		t.Errorf("the first key of Zipf is %.1f times as frequent as the tenth", r)
	}
	loop := loopOf(1.5)(10)
	seen := map[int]bool{}
	for range 15 {
		seen[loop()] = true
	}
	coretest.Check(t, len(seen) == 15 && seen[loop()], "the loop is %v", seen)
}

func TestSpread(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 100} {
		var calls, sum atomic.Int64
		spread(8, n, func(n int) { calls.Add(1); sum.Add(int64(n)) })
		coretest.Check(t, calls.Load() == 8 && sum.Load() == int64(n), "%d operations by 8 goroutines: %d by %d", n, sum.Load(), calls.Load())
	}
}
