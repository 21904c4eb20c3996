package breaker_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
)

const (
	success = breaker.Success
	failure = breaker.Failure
	neutral = breaker.Neutral
)

var start = time.Unix(1_000_000_000, 0)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func made(t testing.TB, opts breaker.Options) *breaker.Breaker {
	t.Helper()
	b, err := breaker.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func check(t testing.TB, what string, got, want any) {
	t.Helper()
	coretest.Check(t, got == want, "%s: got %v, want %v", what, got, want)
}

func allow(t testing.TB, b *breaker.Breaker, seconds float64, want bool) breaker.Permit {
	t.Helper()
	p, ok := b.Allow(at(seconds))
	coretest.Check(t, ok == want, "allowed at %v s: got %t, want %t", seconds, ok, want)
	return p
}

// Defaults and extreme options, which the model does not have. Each step is a second and the result of a call.
func TestOpens(t *testing.T) {
	type step struct {
		second float64
		result breaker.Result
	}
	for name, c := range map[string]struct {
		opts     breaker.Options
		steps    []step
		opens    bool // the last step opens the breaker, no earlier one
		failures int  // then
	}{
		"five in a row by default":       {breaker.Options{}, []step{{0, failure}, {9, failure}, {99, failure}, {999, failure}, {9999, failure}}, true, 5},
		"no threshold":                   {breaker.Options{Threshold: -1}, []step{{0, failure}, {0, failure}, {0, failure}, {0, failure}, {0, failure}, {0, failure}}, false, 6},
		"20 calls by default":            {breaker.Options{Rate: 1}, repeat(step{0, failure}, 20), true, 20},
		"no minimum":                     {breaker.Options{Rate: 1, MinCalls: -1}, []step{{0, failure}}, true, 1},
		"the threshold beside a rate":    {breaker.Options{Rate: 1, Threshold: 2}, []step{{0, failure}, {0, success}, {20, success}, {26, failure}}, true, 2},
		"a window that is a nanosecond":  {breaker.Options{Rate: 1, MinCalls: 2, Window: 1}, []step{{0, failure}, {1, failure}}, false, 1},
		"a window that lasts for ever":   {breaker.Options{Threshold: 2, Window: math.MaxInt64}, []step{{0, failure}, {1e9, failure}}, true, 2},
		"a rate with a negative window":  {breaker.Options{Rate: 1, MinCalls: 2, Window: -1}, []step{{0, failure}, {1, failure}}, false, 1},
		"a negative rate, as if without": {breaker.Options{Rate: -1, Threshold: 1}, []step{{0, failure}}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := made(t, c.opts)
			for i, s := range c.steps {
				last := i == len(c.steps)-1
				check(t, "changed", b.Done(allow(t, b, s.second, true), at(s.second), s.result), last && c.opens)
			}
			end := c.steps[len(c.steps)-1].second
			want := breaker.Closed
			if c.opens {
				want = breaker.Open
			}
			check(t, "state", b.State(at(end)), want)
			check(t, "failures", b.Failures(at(end)), c.failures)
		})
	}
}

func repeat[T any](v T, n int) (list []T) {
	for range n {
		list = append(list, v)
	}
	return list
}

func TestOpenForNothing(t *testing.T) {
	b := made(t, breaker.Options{Threshold: 1, OpenFor: -1})
	b.Trip(at(0))
	check(t, "state", b.State(at(0)), breaker.HalfOpen)
	allow(t, b, 0, true)
	allow(t, b, 1e6, false) // the trial is not replaced
}

func TestOptionsThatAreWrong(t *testing.T) {
	for _, rate := range []float64{1.1, math.Inf(1), math.NaN()} {
		b, err := breaker.New(breaker.Options{Rate: rate})
		coretest.Check(t, b == nil && err != nil && strings.HasPrefix(err.Error(), "breaker: Options.Rate is "), "rate %v: got %v and %v, want an error", rate, b, err)
	}
}

// model is a breaker that remembers everything and computes its answers from that.
type model struct {
	opts    breaker.Options // all set
	state   breaker.State
	changed time.Time      // when the state was entered
	calls   []result       // calls since the last Reset
	since   map[int]string // calls that began in the present state: "" or "trial" or "lost"
	newest  time.Time      // when the newest trial began
	good    int
}

type result struct {
	at     time.Time
	failed bool
}

func (m *model) enter(s breaker.State, now time.Time) {
	m.state, m.changed, m.since, m.good = s, now, map[int]string{}, 0
	if s == breaker.Closed {
		m.calls = nil
	}
}

func (m *model) advance(now time.Time) {
	if m.state == breaker.Open && now.Sub(m.changed) >= m.opts.OpenFor {
		m.enter(breaker.HalfOpen, now)
	}
}

func (m *model) allow(call int, now time.Time) bool {
	m.advance(now)
	switch m.state {
	case breaker.Open:
		return false
	case breaker.Closed:
		m.since[call] = ""
		return true
	}
	out := 0
	for _, kind := range m.since {
		if kind == "trial" {
			out++
		}
	}
	if out >= m.opts.Trials {
		if now.Sub(m.newest) < m.opts.OpenFor {
			return false
		}
		for call, kind := range m.since {
			if kind == "trial" {
				m.since[call] = "lost"
			}
		}
	}
	m.since[call], m.newest = "trial", now
	return true
}

func (m *model) done(call int, now time.Time, r breaker.Result) {
	if _, counts := m.since[call]; !counts {
		return
	}
	delete(m.since, call)
	if r == neutral {
		return
	}
	m.calls = append(m.calls, result{now, r == failure})
	switch {
	case m.state == breaker.HalfOpen && r == failure:
		m.enter(breaker.Open, now)
	case m.state == breaker.HalfOpen:
		if m.good++; m.good == m.opts.Trials {
			m.enter(breaker.Closed, now)
		}
	case r == failure:
		calls, failures, inRow := m.count(now)
		if m.opts.Window == 0 {
			failures = inRow
		}
		byRate := m.opts.Rate > 0 && calls >= m.opts.MinCalls && float64(failures) >= m.opts.Rate*float64(calls)
		if byRate || m.opts.Threshold > 0 && failures >= m.opts.Threshold {
			m.enter(breaker.Open, now)
		}
	}
}

// count counts by parts of the window.
func (m *model) count(now time.Time) (calls, failures, inRow int) {
	for _, c := range m.calls {
		if inRow++; !c.failed {
			inRow = 0
		}
		if part := int64(m.opts.Window / 10); part > 0 && now.UnixNano()/part-c.at.UnixNano()/part < 10 {
			calls++
			if c.failed {
				failures++
			}
		}
	}
	return calls, failures, inRow
}

// Whatever happens, a breaker is in the state, and allows the calls, that the model says.
func TestModel(t *testing.T) {
	states := map[breaker.State]int{}
	for seed := range uint64(long.Often(300, 60)) {
		rng := rand.New(rand.NewPCG(seed, 8))
		opts := breaker.Options{Threshold: 1 + rng.IntN(4), OpenFor: time.Duration(1 + rng.IntN(60)), Trials: 1 + rng.IntN(3)}
		if rng.IntN(2) == 0 {
			opts.Window = time.Duration(10 * (1 + rng.IntN(10)))
		}
		if opts.Window > 0 && rng.IntN(2) == 0 {
			opts.Rate, opts.MinCalls, opts.Threshold = rng.Float64(), 1+rng.IntN(5), -1
		}
		b, m, now := made(t, opts), &model{opts: opts}, start
		m.enter(breaker.Closed, now)
		var out []int
		permits := map[int]breaker.Permit{}
		for call := range 2000 {
			now = now.Add(time.Duration(rng.IntN(10)))
			switch n := rng.IntN(100); {
			case n == 0:
				b.Trip(now)
				if m.state != breaker.Open {
					m.enter(breaker.Open, now)
				}
				m.changed = now
			case n == 1:
				b.Reset()
				if m.calls = nil; m.state != breaker.Closed {
					m.enter(breaker.Closed, now)
				}
			case n < 60 || len(out) == 0:
				p, ok := b.Allow(now)
				if want := m.allow(call, now); ok != want {
					t.Fatalf("seed %d, call %d, %+v: allowed %t, want %t", seed, call, opts, ok, want)
				}
				if ok {
					out, permits[call] = append(out, call), p
				}
			default:
				i := rng.IntN(len(out))
				r := breaker.Result(rng.IntN(3))
				before := m.state
				m.done(out[i], now, r)
				if changed := b.Done(permits[out[i]], now, r); changed != (m.state != before) {
					t.Fatalf("seed %d, call %d, %+v: changed is %t, in %s, before %s", seed, call, opts, changed, m.state, before)
				}
				out = append(out[:i], out[i+1:]...)
			}
			m.advance(now)
			states[m.state]++
			if got := b.State(now); got != m.state {
				t.Fatalf("seed %d, call %d, %+v: %s, want %s", seed, call, opts, got, m.state)
			}
			closesIn, failures := time.Duration(0), 0
			if m.state == breaker.Open {
				closesIn = m.changed.Add(opts.OpenFor).Sub(now)
			}
			if _, failures, _ = m.count(now); opts.Window == 0 {
				failures = b.Failures(now)
			}
			if b.ClosesIn(now) != closesIn || b.Failures(now) != failures || b.Done(breaker.Permit{}, now, failure) {
				t.Fatalf("seed %d, call %d, %+v: closes in %v after %d failures, want %v and %d, and the zero Permit counts for nothing", seed, call, opts, b.ClosesIn(now), b.Failures(now), closesIn, failures)
			}
		}
	}
	coretest.Check(t, len(states) == 3, "states seen: %v", states)
}

func TestAllocs(t *testing.T) {
	b := made(t, breaker.Options{Rate: 0.5, Threshold: 3, OpenFor: -1})
	now := start
	n := testing.AllocsPerRun(100, func() {
		for _, r := range []breaker.Result{success, failure, failure, failure, neutral} {
			now = now.Add(time.Second)
			p, _ := b.Allow(now)
			b.Done(p, now, r)
		}
	})
	check(t, "allocations", n, 0.0)
}

// A shadow has the states of a breaker in force, and allows every call.
func TestShadow(t *testing.T) {
	for seed := range uint64(long.Often(100, 50)) {
		random := rand.New(rand.NewPCG(seed, 5))
		opts := breaker.Options{Threshold: 1 + random.IntN(3), OpenFor: time.Second, Trials: random.IntN(3)}
		inForce := made(t, opts)
		opts.Shadow = true
		shadow := made(t, opts)
		type call struct {
			inForce, shadow breaker.Permit
			allowed         bool
		}
		var calls []call
		now := 0.0
		for range 100 {
			now += random.ExpFloat64() / 4
			check(t, "state", shadow.State(at(now)), inForce.State(at(now)))
			if len(calls) < 4 {
				p, ok := inForce.Allow(at(now))
				calls = append(calls, call{p, allow(t, shadow, now, true), ok})
				continue
			}
			i, r := random.IntN(len(calls)), breaker.Result(random.IntN(3))
			c := calls[i]
			calls = append(calls[:i], calls[i+1:]...)
			check(t, "has a permit", c.shadow != breaker.Permit{}, c.allowed)
			shadow.Done(c.shadow, at(now), r)
			if c.allowed {
				inForce.Done(c.inForce, at(now), r)
			}
		}
	}
}
