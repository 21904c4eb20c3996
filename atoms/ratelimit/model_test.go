package ratelimit

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dullBucket is a token bucket as it is explained: tokens drip in, up to the burst.
// It is exact, and slow.
type dullBucket struct {
	rate, tokens *big.Rat // per nanosecond; there
	most         *big.Rat // what would be there if nothing had ever been taken
	burst        int64
	last         int64 // when tokens was right
	until        int64
	unlimited    bool
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func perNano(rate float64) *big.Rat {
	if rate == Unlimited {
		rate = 0
	}
	r := new(big.Rat).SetFloat64(rate)
	return r.Quo(r, rat(1e9))
}

func newDullBucket(rate float64, burst int64) *dullBucket {
	return &dullBucket{rate: perNano(rate), tokens: rat(burst), most: rat(burst), burst: burst, unlimited: rate == Unlimited}
}

func (b *dullBucket) clone() *dullBucket {
	c := *b
	c.rate, c.tokens, c.most = new(big.Rat).Set(b.rate), new(big.Rat).Set(b.tokens), new(big.Rat).Set(b.most)
	return &c
}

// advance lets tokens drip in, up to most.
func (b *dullBucket) advance(now, most int64) {
	if from := max(b.last, b.until); now > from {
		drip := new(big.Rat).Mul(b.rate, rat(now-from))
		b.tokens.Add(b.tokens, drip)
		b.most.Add(b.most, drip)
	}
	b.last = max(b.last, now)
	if b.tokens.Cmp(rat(most)) > 0 {
		b.tokens.SetInt64(most)
	}
}

// giveBack makes it as if n had never been taken.
func (b *dullBucket) giveBack(n int64) {
	b.tokens.Add(b.tokens, rat(n))
	if b.tokens.Cmp(b.most) > 0 {
		b.tokens.Set(b.most)
	}
}

func (b *dullBucket) setBurst(burst int64) {
	if b.most.Cmp(rat(b.burst)) > 0 {
		b.most.SetInt64(b.burst)
	}
	b.burst = burst
}

func (b *dullBucket) paused() bool { return !b.unlimited && b.rate.Sign() == 0 }

func (b *dullBucket) open(now int64) bool { return !b.paused() && now >= b.until }

func (b *dullBucket) has(n, now int64) bool {
	return b.open(now) && (b.unlimited || b.tokens.Cmp(rat(n)) >= 0)
}

// due is the first nanosecond, not before from, at which n are there.
func (b *dullBucket) due(n, from int64) int64 {
	switch {
	case b.paused():
		return never
	case b.unlimited:
		return max(from, b.until)
	}
	start := max(b.last, b.until)
	missing := new(big.Rat).Sub(rat(n), b.tokens)
	if missing.Sign() <= 0 {
		return max(from, start)
	}
	missing.Quo(missing, b.rate)
	ns := new(big.Int).Add(missing.Num(), missing.Denom())
	ns.Sub(ns, big.NewInt(1)).Quo(ns, missing.Denom())
	return max(from, start+ns.Int64())
}

func (b *dullBucket) setRate(rate float64) {
	b.rate, b.unlimited = perNano(rate), rate == Unlimited
}

// dullPlace is somebody in line.
type dullPlace struct {
	costs []int64
	at    int64 // when it was granted
}

// dullLine is a queue in front of dull buckets: the first in line takes from all of
// them at the first moment at which all have enough.
type dullLine struct {
	buckets []*dullBucket
	line    []*dullPlace
	from    int64
}

func (l *dullLine) clone() *dullLine {
	c := &dullLine{line: append([]*dullPlace(nil), l.line...), from: l.from}
	for _, b := range l.buckets {
		c.buckets = append(c.buckets, b.clone())
	}
	return c
}

func (l *dullLine) settle(now int64) (granted []*dullPlace) {
	for len(l.line) > 0 {
		p := l.line[0]
		at := l.from
		for i, b := range l.buckets {
			at = max(at, b.due(min(p.costs[i], b.burst), l.from))
		}
		if at > now {
			break
		}
		for i, b := range l.buckets {
			b.advance(max(l.from, at-1), b.burst)
			if at > l.from && b.tokens.Cmp(rat(min(p.costs[i], b.burst))) < 0 {
				b.advance(at, never) // due in this very nanosecond
			} else {
				b.advance(at, b.burst)
			}
			if !b.unlimited {
				b.tokens.Sub(b.tokens, rat(p.costs[i]))
			}
		}
		p.at, l.from = at, at
		l.line = l.line[1:]
		granted = append(granted, p)
	}
	for _, b := range l.buckets {
		b.advance(now, b.burst)
	}
	return granted
}

func (l *dullLine) changed(now int64) { l.from = max(l.from, now) }

// A walk compares a line with the dull one, over random steps at random times.
type walk struct {
	t      *testing.T
	random *rand.Rand
	now    int64
	line   *line
	dull   *dullLine
	places []*place
	twins  map[*place]*dullPlace
	said   []string
}

var someRates = []float64{1, 10, 3, 0.5, 1e3, 1e6, 0.001, 1.0 / 3, 7.25, 123456.789, 1e9, 3e8}

func newWalk(t *testing.T, seed uint64, buckets int) *walk {
	w := &walk{
		t: t, random: rand.New(rand.NewPCG(seed, uint64(buckets))),
		line: &line{}, dull: &dullLine{}, twins: map[*place]*dullPlace{},
	}
	meters := make([]meter, buckets)
	for i := range meters {
		rate, burst := w.rate(), 1+w.random.Int64N(20)
		meters[i] = newMeter(0, rate, burst)
		w.line.buckets = append(w.line.buckets, bucket{&meters[i], lowest})
		w.dull.buckets = append(w.dull.buckets, newDullBucket(rate, burst))
	}
	return w
}

func (w *walk) rate() float64 {
	return someRates[w.random.IntN(len(someRates))] * (0.5 + w.random.Float64()) / 1.5
}

func (w *walk) say(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf("%d: ", w.now)+fmt.Sprintf(format, args...))
	if len(w.said) > 12 {
		w.said = w.said[1:]
	}
}

// settle settles both, and compares whom they grant, and when.
func (w *walk) settle() {
	done := w.line.settle(w.now)
	for _, twin := range w.dull.settle(w.now) {
		p := done.first
		require.NotNil(w.t, p, "not granted, though due at %d of %d: %q", twin.at, w.now, w.said)
		require.Same(w.t, twin, w.twins[p], "%q", w.said)
		done.first = p.behind
	}
	require.Nil(w.t, done.first, "granted too early: %q", w.said)
	require.InDelta(w.t, w.dull.from, w.line.from, 1, "%q", w.said)
	w.line.from = w.dull.from
	for i, b := range w.dull.buckets {
		m := w.line.buckets[i].meter
		want, _ := b.tokens.Float64()
		if len(w.dull.line) == 0 {
			require.InDelta(w.t, want, m.level(w.line.buckets[i].mark, w.now).float(), 1e-9+1e-9*abs(want), "tokens: %q", w.said)
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }

func (w *walk) costs() []int64 {
	costs := make([]int64, len(w.line.buckets))
	for i := range costs {
		costs[i] = w.random.Int64N(1 + w.dull.buckets[i].burst)
		if w.random.IntN(3) > 0 {
			costs[i] = min(costs[i], 1)
		}
	}
	return costs
}

func (w *walk) step() {
	// Times are odd, so that nothing is due at exactly now.
	slowest := 1e-3
	for _, b := range w.dull.buckets {
		if r, _ := b.rate.Float64(); r > 0 {
			slowest = min(max(slowest, 0), r)
		}
	}
	w.now += 1 + w.random.Int64N(1+int64(min(3/slowest, 1e15)))
	w.settle()
	switch i := w.random.IntN(len(w.line.buckets)); w.random.IntN(13) {
	default: // take now
		costs := w.costs()
		want := len(w.dull.line) == 0
		for i, b := range w.dull.buckets {
			want = want && b.has(costs[i], w.now)
		}
		r := room{line: *w.line}
		got := r.takeAll(w.now, costs)
		*w.line = r.line
		w.say("take %v: %v", costs, got)
		require.Equal(w.t, want, got, "%q", w.said)
		if want {
			for i, b := range w.dull.buckets {
				if !b.unlimited {
					b.tokens.Sub(b.tokens, rat(costs[i]))
				}
			}
		}
	case 4, 5, 6: // stand in line
		costs := w.costs()
		w.say("push %v", costs)
		w.foresee(costs)
		p := &place{costs: costs}
		twin := &dullPlace{costs: costs}
		if len(w.dull.line) == 0 {
			w.dull.from = w.now
		}
		w.line.push(p, w.now)
		w.dull.line = append(w.dull.line, twin)
		w.twins[p] = twin
		w.places = append(w.places, p)
		w.settle()
	case 7: // leave, or give back
		if len(w.places) == 0 {
			return
		}
		at := w.random.IntN(len(w.places))
		p := w.places[at]
		w.places = append(w.places[:at], w.places[at+1:]...)
		w.say("cancel %v, in line %v", p.costs, p.standing == inLine)
		r := room{line: *w.line, counts: &counts{allowed: 1}, waiting: newCounter()}
		var done places
		twin := w.twins[p]
		if p.standing == granted {
			for i, b := range w.dull.buckets {
				if p.free>>i&1 == 0 {
					b.giveBack(p.costs[i])
				}
			}
		} else {
			for i, other := range w.dull.line {
				if other == twin {
					w.dull.line = append(w.dull.line[:i:i], w.dull.line[i+1:]...)
				}
			}
		}
		r.drop(p, nil, &done)
		*w.line = r.line
		w.line.changed(w.now)
		w.dull.changed(w.now)
		w.settle()
	case 8: // rate
		rate := w.rate()
		switch w.random.IntN(8) {
		case 0:
			rate = 0
		case 1:
			rate = Unlimited
		}
		w.say("rate %g", rate)
		w.line.buckets[i].meter.setRate(w.now, rate)
		w.dull.buckets[i].setRate(rate)
		w.line.changed(w.now)
		w.dull.changed(w.now)
		w.settle()
	case 9: // burst
		burst := 1 + w.random.Int64N(20)
		w.say("burst %d", burst)
		w.line.buckets[i].meter.setBurst(w.now, burst)
		w.dull.buckets[i].setBurst(burst)
		w.line.changed(w.now)
		w.dull.changed(w.now)
		w.settle()
	case 11: // fill
		w.say("fill")
		w.line.fill(w.now)
		for _, b := range w.dull.buckets {
			b.tokens.SetInt64(b.burst)
			b.most.SetInt64(b.burst)
		}
		w.line.changed(w.now)
		w.dull.changed(w.now)
		w.settle()
	case 10: // pause
		until := w.now + w.random.Int64N(1+int64(min(5/slowest, 1e15)))
		w.say("pause until %d", until)
		w.line.buckets[i].meter.pause(w.now, until)
		b := w.dull.buckets[i]
		if until > w.now {
			b.until = max(b.until, until)
		} else {
			b.until = min(b.until, w.now) // that ends it
		}
		w.line.changed(w.now)
		w.dull.changed(w.now)
		w.settle()
	}
}

// foresee compares when the next would be due, and when all in line are.
func (w *walk) foresee(costs []int64) {
	future := w.dull.clone()
	if len(future.line) == 0 {
		future.from = w.now
	}
	for i, p := range future.line {
		future.line[i] = &dullPlace{costs: p.costs, at: never}
	}
	last := &dullPlace{costs: costs, at: never}
	future.line = append(future.line, last)
	all := future.line
	future.settle(never - 1)
	w.same(last.at, w.line.dueNext(costs, w.now))
	for p := w.line.first; p != nil; p = p.behind {
		w.same(all[0].at, w.line.dueOf(p, w.now))
		all = all[1:]
	}
}

func (w *walk) same(want, got int64) {
	if want == never {
		require.EqualValues(w.t, int64(never), got, "%q", w.said)
		return
	}
	require.InDelta(w.t, want-w.now, got-w.now, 1+1e-12*float64(want-w.now), "due: %q", w.said)
}

// The engine does what an exact token bucket does, with one bucket and with several.
func TestModelTokenBucket(t *testing.T) {
	steps, seeds := 3000, 20
	if testing.Short() {
		steps, seeds = 600, 6
	}
	for _, buckets := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("buckets=%d", buckets), func(t *testing.T) {
			for seed := range uint64(seeds) {
				w := newWalk(t, seed, buckets)
				for range steps {
					w.step()
				}
			}
		})
	}
}

// dullGCRA is the generic cell rate algorithm as it is explained: a theoretical
// arrival time.
type dullGCRA struct {
	interval, tat *big.Rat // in nanoseconds
	burst         int64
}

func newDullGCRA(rate float64, burst int64) *dullGCRA {
	return &dullGCRA{new(big.Rat).Inv(perNano(rate)), new(big.Rat), burst}
}

func (g *dullGCRA) spans(n int64) *big.Rat { return new(big.Rat).Mul(g.interval, rat(n)) }

func (g *dullGCRA) idle(now int64) {
	if g.tat.Cmp(rat(now)) < 0 {
		g.tat.SetInt64(now)
	}
}

func (g *dullGCRA) allow(now, n int64) bool {
	g.idle(now)
	next := new(big.Rat).Add(g.tat, g.spans(n))
	if new(big.Rat).Sub(next, g.spans(g.burst)).Cmp(rat(now)) > 0 {
		return false
	}
	g.tat = next
	return true
}

// setRate rescales what is outstanding.
func (g *dullGCRA) setRate(now int64, rate float64) {
	g.idle(now)
	old := g.interval
	g.interval = new(big.Rat).Inv(perNano(rate))
	debt := new(big.Rat).Sub(g.tat, rat(now))
	debt.Mul(debt, g.interval).Quo(debt, old)
	g.tat.Add(rat(now), debt)
}

func (g *dullGCRA) setBurst(now, burst int64) {
	g.idle(now)
	g.tat.Add(g.tat, g.spans(burst-g.burst))
	g.burst = burst
}

// One engine is both: whatever GCRA lets pass, the token bucket does, and the other
// way round, also when rate and burst change.
func TestModelGCRA(t *testing.T) {
	steps := 40_000
	if testing.Short() {
		steps = 8000
	}
	random := rand.New(rand.NewPCG(1, 2))
	rate := 10.0
	m, mark, g := newMeter(0, rate, 5), lowest, newDullGCRA(rate, 5)
	now, passed := int64(0), 0
	for range steps {
		now += 1 + random.Int64N(1+int64(1.2e9/rate))
		switch random.IntN(60) {
		case 0:
			rate = someRates[random.IntN(len(someRates))] * (0.5 + random.Float64()) / 1.5
			m.setRate(now, rate)
			g.setRate(now, rate)
			// Otherwise the numbers of the dull one get longer and longer.
			mark, g = m.level(mark, now).back(&m, now), newDullGCRA(rate, g.burst)
			g.tat = new(big.Rat).Add(rat(now), g.spans(g.burst))
			g.tat.Sub(g.tat, new(big.Rat).Mul(exact(m.level(mark, now)), g.interval))
		case 1:
			burst := 1 + random.Int64N(20)
			m.setBurst(now, burst)
			g.setBurst(now, burst)
		default:
			n := random.Int64N(3)
			got, want := m.takeSlow(&mark, now, n) == taken, g.allow(now, n)
			require.Equal(t, want, got, "rate %g, burst %d, %d tokens at %d", rate, g.burst, n, now)
			if got && n > 0 {
				passed++
			}
			// Both say the same about when the bucket is full.
			if random.IntN(10) == 0 {
				g.idle(now)
				tat, _ := new(big.Rat).Sub(g.tat, rat(now)).Float64()
				b := bucket{&m, mark}
				require.InDelta(t, tat, b.due(m.burst, now)-now, 1+tat*1e-12)
			}
		}
	}
	assert.Greater(t, passed, steps/10)
}

// back returns the mark with which the level is this.
func (a amount) back(m *meter, now int64) amount { return m.at(now).minus(a) }

func exact(a amount) *big.Rat {
	r := new(big.Rat).SetFrac(new(big.Int).SetUint64(a.part), new(big.Int).Lsh(big.NewInt(1), 64))
	return r.Add(r, rat(a.whole))
}

// Intervals are not rounded to nanoseconds: over any length of time, as many pass as
// rate and burst say, to the nanosecond.
func TestExactOverTime(t *testing.T) {
	for _, rate := range []float64{3, 7, 0.5, 0.3, 1e9, 3e8, 3.7e8, 999_999_937, 1e-9, 1.0 / 86400} {
		m := newMeter(0, rate, 1)
		for _, n := range []int64{1, 2, 3, 1000, 1_000_003, 1_000_000_007} {
			want := new(big.Rat).Quo(rat(n), perNano(rate))
			if f, _ := want.Float64(); f > 4e18 {
				continue
			}
			ceil := new(big.Int).Add(want.Num(), new(big.Int).Sub(want.Denom(), big.NewInt(1)))
			ceil.Quo(ceil, want.Denom())
			assert.Equal(t, ceil.Int64(), m.when(amount{whole: n}, 0), "%d at %g per second", n, rate)
		}
	}
}

// when is the inverse of at.
func TestWhenIsInverse(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		rate := someRates[random.IntN(len(someRates))] * (0.5 + random.Float64()) / 1.5
		m := newMeter(random.Int64N(1e12), rate, 5)
		m.total = amount{random.Int64N(1e6), random.Uint64()}
		v := amount{random.Int64N(1e12), random.Uint64()}
		at := m.when(v, m.since)
		if at == never {
			continue
		}
		require.False(t, m.at(at).less(v), "rate %g", rate)
		if at > m.since {
			require.True(t, m.at(at-1).less(v), "rate %g", rate)
		}
	}
}

// Whoever looked at the clock earlier than others, and was overtaken by them, takes no
// time back, in which tokens would come in twice.
func TestPauseWithAnOldClock(t *testing.T) {
	m := newMeter(0, 1e9, 5)
	m.setRate(1000, 1e9)
	m.pause(100, 150)
	assert.EqualValues(t, 1000, m.since)
	m.pause(1000, 2000)
	m.setRate(3000, 1e9)
	m.pause(1500, 1500)
	assert.EqualValues(t, 3000, m.since)
	assert.Equal(t, amount{whole: 2000}, m.at(3000))
}

// What was taken and given back leaves no trace, however many times.
func TestGiveBackIsExact(t *testing.T) {
	m := newMeter(0, 1.0/3, 10)
	l := line{buckets: []bucket{{&m, lowest}}}
	require.Equal(t, taken, m.take(&l.buckets[0].mark, 12345, 4))
	before := l.buckets[0].mark
	now := int64(12345)
	for range 1000 {
		now += int64(time.Second) / 7
		p := &place{costs: []int64{3}, standing: granted}
		if m.take(&l.buckets[0].mark, now, 3) == taken {
			l.adjust(p, []int64{0})
		}
		if m.level(before, now).whole < 10 {
			require.Equal(t, before, l.buckets[0].mark.max(before))
			require.Equal(t, m.level(before, now), m.level(l.buckets[0].mark, now))
		}
	}
}

func newCounter() *atomic.Int64 { return new(atomic.Int64) }

// The table of a shard does what a map would do, also when hashes are equal.
func TestKeyedTable(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 7))
	s := shard[int]{meter: newMeter(0, 1, 1), maxKeys: 300}
	s.grow()
	known := map[int]bool{}
	hash := func(key int) uint32 { return uint32(key % 97 * 1021) }
	for range 20_000 {
		key := random.IntN(400)
		at := s.find(key, hash(key))
		require.Equal(t, known[key], at != none)
		switch {
		case at != none && random.IntN(2) == 0:
			s.drop(at)
			delete(known, key)
		case at == none:
			before := s.forgotten
			at = s.add(key, hash(key), 0)
			s.slots[at].mark = amount{whole: 1} // not full
			if s.forgotten != before {
				clear(known)
				for i := range s.slots {
					if s.slots[i].used {
						known[s.slots[i].key] = true
					}
				}
			}
			known[key] = true
		}
		if at != none && known[key] {
			require.Equal(t, key, s.slots[at].key)
		}
		require.Len(t, known, len(s.slots)-len(s.free))
	}
	assert.Greater(t, len(known), 150)
}
