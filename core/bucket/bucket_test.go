package bucket

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/long"
)

// A reference is the generic cell rate algorithm as textbooks explain it: a theoretical arrival
// time, exact and slow. It may be in the past, and may be so far in the future that there is a
// debt.
type reference struct {
	interval, tat *big.Rat // in nanoseconds
	least         *big.Rat // tat if nothing had been taken since the burst has changed
	burst         int64
	until         int64 // the end of the pause
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func perNano(rate float64) *big.Rat {
	r := new(big.Rat).SetFloat64(rate)
	return r.Quo(r, rat(1e9))
}

func newReference(rate float64, burst int64) *reference {
	return &reference{interval: new(big.Rat).Inv(perNano(rate)), tat: new(big.Rat), least: new(big.Rat), burst: burst}
}

func (g *reference) spans(n int64) *big.Rat { return new(big.Rat).Mul(g.interval, rat(n)) }

func later(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// idle moves the theoretical arrival time to now, if it is in the past: a full bucket
// overflows.
func (g *reference) idle(now int64) *big.Rat { return later(g.tat, rat(now)) }

// adjust takes n more, or gives tokens back that would not have overflowed.
func (g *reference) adjust(now, n int64) {
	g.tat = later(new(big.Rat).Add(g.idle(now), g.spans(n)), g.least)
}

func (g *reference) setBurst(now, burst int64) {
	more := g.spans(burst - g.burst)
	g.least = new(big.Rat).Add(later(g.least, rat(now)), more)
	g.tat = later(new(big.Rat).Add(g.idle(now), more), rat(now))
	g.burst = burst
}

func (g *reference) take(now, n int64) bool {
	ok := now >= g.until && n <= g.burst && g.due(n, now) == now
	if ok {
		g.tat = new(big.Rat).Add(g.idle(now), g.spans(n))
	}
	return ok
}

// due is the first nanosecond, not before from, with n tokens, or with a full bucket.
func (g *reference) due(n, from int64) int64 {
	at := new(big.Rat).Sub(g.tat, g.spans(g.burst-min(n, g.burst)))
	ns := new(big.Int).Add(at.Num(), new(big.Int).Sub(at.Denom(), big.NewInt(1)))
	return max(from, g.until, ns.Div(ns, at.Denom()).Int64())
}

// book takes n tokens at the time at. If they are due in this nanosecond, they are taken at the
// moment at which they are due, so that nothing overflows.
func (g *reference) book(n, from, at int64) {
	if at == from || g.due(n, at-1) < at {
		g.tat = g.idle(at)
	}
	g.tat = new(big.Rat).Add(g.tat, g.spans(n))
}

// setRate keeps the tokens. It takes their number from level, which is rounded: exact numbers
// would get longer with every change.
func (g *reference) setRate(now int64, rate float64, level *big.Rat) {
	old := g.interval
	g.interval = new(big.Rat).Inv(perNano(rate))
	least := new(big.Rat).Sub(later(g.least, rat(now)), rat(now))
	g.least = least.Add(rat(now), least.Quo(least.Mul(least, g.interval), old))
	g.tat = new(big.Rat).Mul(new(big.Rat).Sub(rat(g.burst), level), g.interval)
	g.tat.Add(g.tat, rat(now))
}

func (g *reference) level(now int64) *big.Rat {
	left := new(big.Rat).Sub(g.idle(now), rat(now))
	return new(big.Rat).Sub(rat(g.burst), left.Quo(left, g.interval))
}

// pause moves all times by the length of the pause.
func (g *reference) pause(now, d int64) {
	g.tat = new(big.Rat).Add(g.idle(now), rat(d))
	g.least = new(big.Rat).Add(later(g.least, rat(now)), rat(d))
	g.until = now + d
}

func exact(a Mark) *big.Rat {
	r := new(big.Rat).SetFrac(new(big.Int).SetUint64(a.part), new(big.Int).Lsh(big.NewInt(1), 64))
	return r.Add(r, rat(a.whole))
}

var someRates = []float64{1, 10, 3, 0.5, 1e3, 1e6, 0.001, 1.0 / 3, 7.25, 123456.789, 1e9, 3e8}

func someRate(random *rand.Rand) float64 {
	return someRates[random.IntN(len(someRates))] * (0.5 + random.Float64()) / 1.5
}

// near fails unless two times are equal, apart from the rounding of long times.
func near(t *testing.T, what string, got, want, now int64) {
	t.Helper()
	if d := got - want; max(d, -d) > 1+(want-now)>>40 {
		t.Fatalf("%s: %d, not %d, at %d", what, got, want, now)
	}
}

// A meter gives the answers of GCRA for every bucket, even with debts, refunds, pauses, and
// changing rates and bursts.
func TestMeterIsGCRA(t *testing.T) {
	steps := long.Often(1_000_000, 5_000)
	random := rand.New(rand.NewPCG(1, 2))
	rate, now := 10.0, int64(0)
	m, mark, g := Start(0, rate, 5), Mark{}, newReference(rate, 5)
	count := map[string]int{}
	for range steps {
		now += 1 + random.Int64N(1+int64(1.2e9/rate))
		switch random.IntN(60) {
		case 0:
			rate = someRate(random)
			m.SetRate(now, rate)
			mark = m.at(now).minus(m.level(mark, now))
			g.setRate(now, rate, exact(m.level(mark, now)))
		case 1:
			burst := 1 + random.Int64N(20)
			m.SetBurst(now, burst)
			g.setBurst(now, burst)
		case 2:
			mark, g.tat, g.least = m.Fill(now), rat(now), new(big.Rat)
		case 3:
			d := 1 + random.Int64N(1+int64(5e9/rate))
			m.PauseFor(now, 1)
			m.PauseFor(now, time.Duration(d))
			g.pause(now, d)
			if at := now + random.Int64N(d); m.Take(&mark, at, 0) {
				t.Fatalf("tokens at %d, in a pause until %d", at, g.until)
			}
			near(t, "due in a pause", m.Due(mark, 1, now), g.due(1, now), now)
			now = g.until
			count["pause"]++
		case 4, 5, 6:
			n, from := random.Int64N(30), now
			at := m.Due(mark, n, from)
			near(t, "due", at, g.due(n, from), now)
			if at != g.due(n, from) {
				continue
			}
			m.Book(&mark, n, from, at)
			g.book(n, from, at)
			now = at
			count["booked"]++
		case 7, 8:
			n := random.Int64N(30) // without waiting, so this may make a debt
			m.Book(&mark, n, now, now)
			g.book(n, now, now)
			if m.Level(mark, now) < 0 {
				count["debt"]++
			}
		case 9, 10, 11:
			n := random.Int64N(20) - 10
			mark = mark.max(m.FullMark(now)) // as if just taken
			m.Adjust(&mark, n)
			g.adjust(now, n)
			count["adjusted"]++
		default:
			n := random.Int64N(3)
			got, want := m.Take(&mark, now, n), g.take(now, n)
			if got != want {
				t.Fatalf("%v, not %v: rate %g, burst %d, %d tokens at %d", got, want, rate, g.burst, n, now)
			}
			if got && n > 0 {
				count["passed"]++
			}
		}
		if want, _ := g.level(now).Float64(); max(m.Level(mark, now)-want, want-m.Level(mark, now)) > 1e-9+1e-9*max(want, -want) {
			t.Fatalf("%g tokens, not %g", m.Level(mark, now), want)
		}
	}
	for _, what := range []string{"passed", "booked", "debt", "adjusted", "pause"} {
		if count[what] < steps/200 {
			t.Errorf("%s only %d times", what, count[what])
		}
	}
}

// Intervals are not rounded to nanoseconds: over any length of time, as many tokens come in as the
// rate says, to the nanosecond.
func TestExactOverTime(t *testing.T) {
	for _, rate := range []float64{3, 7, 0.5, 0.3, 1e9, 3e8, 3.7e8, 999_999_937, 1e-9, 1.0 / 86400} {
		m := Start(0, rate, 1)
		for _, n := range []int64{1, 2, 3, 1000, 1_000_003, 1_000_000_007} {
			want := new(big.Rat).Quo(rat(n), perNano(rate))
			if f, _ := want.Float64(); f > 4e18 {
				continue
			}
			ceil := new(big.Int).Add(want.Num(), new(big.Int).Sub(want.Denom(), big.NewInt(1)))
			ceil.Quo(ceil, want.Denom())
			if at := m.when(m.total.plus(n), 0); at != ceil.Int64() {
				t.Errorf("%d at %g per second: %d, not %v", n, rate, at, ceil)
			}
		}
	}
}

// Due is the inverse of the total.
func TestWhenIsInverse(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		rate := someRate(random)
		m := Start(random.Int64N(1e12), rate, 5)
		m.total = Mark{random.Int64N(1e6), random.Uint64()}
		v := Mark{random.Int64N(1e12), random.Uint64()}
		at := m.when(v, m.since)
		if at == Never {
			continue
		}
		if m.at(at).Less(v) || at > m.since && !m.at(at-1).Less(v) {
			t.Fatalf("rate %g: not the first time", rate)
		}
	}
}

// A caller with an older time does not turn the meter back: otherwise tokens would come in
// twice.
func TestPauseWithAnOldClock(t *testing.T) {
	m := Start(0, 1e9, 5)
	m.SetRate(1000, 1e9)
	m.PauseFor(100, 50)
	if m.since != 1000 {
		t.Errorf("since %d", m.since)
	}
	m.PauseFor(1000, 1000)
	m.SetRate(3000, 1e9)
	m.PauseFor(1500, 0)
	if got := m.at(3000).minus(Mark{whole: origin}); m.since != 3000 || got != (Mark{whole: 2000}) {
		t.Errorf("since %d, total %v", m.since, got)
	}
}

// A bucket that moves to another meter keeps its tokens, up to the new burst.
func TestMove(t *testing.T) {
	a, b := Start(0, 1, 5), Start(0, 1000, 5)
	var mark Mark
	a.Take(&mark, 10, 4)
	if got := b.Level(a.Move(mark, 1e9, &b), 1e9); got != a.Level(mark, 1e9) {
		t.Errorf("%g tokens", got)
	}
	if got := b.Level(a.Move(mark, 1e12, &b), 1e12); got != 5 {
		t.Errorf("%g tokens", got)
	}
}

// The test has the lowest and the highest rate, 0 and Unlimited. No call allocates.
func TestEdges(t *testing.T) {
	for _, rate := range []float64{-1, 1e-10, 1.1e9, Unlimited} {
		if RateRule(rate) == "" {
			t.Errorf("%g is a rate", rate)
		}
	}
	m, mark := Start(0, 0, 5), Mark{}
	if m.Take(&mark, 1, 1) || m.Due(mark, 1, 1) != Never {
		t.Error("tokens at rate 0")
	}
	m.SetRate(2, Unlimited)
	if !m.Take(&mark, 2, 1e6) || m.Due(mark, 1e6, 3) != 3 || mark != (Mark{}) {
		t.Error("no tokens without a limit")
	}
	if !m.SetRate(4, MinRate) {
		t.Error("buckets are full after Unlimited")
	}
	mark = m.Fill(4)
	m.Book(&mark, MaxBurst, 4, 4)
	for range 1 << 23 {
		m.Adjust(&mark, MaxBurst)
	}
	if m.Level(mark, 5) > -float64(MaxBurst)*0x1p20 {
		t.Errorf("the debt is %g", m.Level(mark, 5))
	}
	if n := testing.AllocsPerRun(100, func() {
		m.SetRate(5, 1.0/3)
		m.Book(&mark, 1, 5, m.Due(mark, 1, 5))
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
