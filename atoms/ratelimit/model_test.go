package ratelimit

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A refBucket is a token bucket as textbooks explain it: tokens drip in, up to the burst.
// It is exact, and slow.
type refBucket struct {
	rate, tokens *big.Rat // per nanosecond; there
	most         *big.Rat // the tokens if none had ever been taken
	burst        int64
	last         int64 // the time of tokens
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

func newRefBucket(rate float64, burst int64) *refBucket {
	return &refBucket{rate: perNano(rate), tokens: rat(burst), most: rat(burst), burst: burst, unlimited: rate == Unlimited}
}

func (b *refBucket) clone() *refBucket {
	c := *b
	c.rate, c.tokens, c.most = new(big.Rat).Set(b.rate), new(big.Rat).Set(b.tokens), new(big.Rat).Set(b.most)
	return &c
}

// advance lets tokens drip in, up to most.
func (b *refBucket) advance(now, most int64) {
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

func (b *refBucket) take(n int64) {
	if !b.unlimited {
		b.tokens.Sub(b.tokens, rat(n))
	}
}

// giveBack restores the state as if n had never been taken.
func (b *refBucket) giveBack(n int64) {
	b.tokens.Add(b.tokens, rat(n))
	if b.tokens.Cmp(b.most) > 0 {
		b.tokens.Set(b.most)
	}
}

func (b *refBucket) fill() {
	b.tokens.SetInt64(b.burst)
	b.most.SetInt64(b.burst)
}

func (b *refBucket) setBurst(burst int64) {
	if b.most.Cmp(rat(b.burst)) > 0 {
		b.most.SetInt64(b.burst)
	}
	b.burst = burst
}

// pause ends the pause if until is now.
func (b *refBucket) pause(now, until int64) {
	if until > now {
		b.until = max(b.until, until)
	} else {
		b.until = min(b.until, now)
	}
}

func (b *refBucket) paused() bool { return !b.unlimited && b.rate.Sign() == 0 }

func (b *refBucket) open(now int64) bool { return !b.paused() && now >= b.until }

func (b *refBucket) has(n, now int64) bool {
	return b.open(now) && (b.unlimited || b.tokens.Cmp(rat(n)) >= 0)
}

// due is the first nanosecond, not before from, at which n tokens are there.
func (b *refBucket) due(n, from int64) int64 {
	switch {
	case b.paused():
		return bucket.Never
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

func (b *refBucket) setRate(rate float64) {
	if b.unlimited && rate != Unlimited {
		b.fill()
	}
	b.rate, b.unlimited = perNano(rate), rate == Unlimited
}

// A refRequest is a queued request.
type refRequest struct {
	costs []int64
	at    int64 // when the request was granted; never: it is queued
}

// A refQueue is a queue in front of reference buckets: the first request takes from all of
// them at the first moment at which all have enough.
type refQueue struct {
	buckets []*refBucket
	queued  []*refRequest
	from    int64
}

func (l *refQueue) clone() *refQueue {
	c := &refQueue{queued: append([]*refRequest(nil), l.queued...), from: l.from}
	for _, b := range l.buckets {
		c.buckets = append(c.buckets, b.clone())
	}
	return c
}

func (l *refQueue) settle(now int64) {
	for len(l.queued) > 0 {
		p := l.queued[0]
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
				b.advance(at, bucket.Never) // the request is due in this nanosecond
			} else {
				b.advance(at, b.burst)
			}
			b.take(p.costs[i])
		}
		p.at, l.from = at, at
		l.queued = l.queued[1:]
	}
	for _, b := range l.buckets {
		b.advance(now, b.burst)
	}
}

// A walk compares a queue with the reference, over random steps at random times.
type walk struct {
	t        *testing.T
	random   *rand.Rand
	now      int64
	queue    *queue
	ref      *refQueue
	requests []*request
	twins    map[*request]*refRequest
	dropped  map[int]int // number of dropped requests, by time: before (-1), at (0) or after (1) their turn
	log      []string
}

var someRates = []float64{1, 10, 3, 0.5, 1e3, 1e6, 0.001, 1.0 / 3, 7.25, 123456.789, 1e9, 3e8}

// newQueue makes a queue for tests that call only methods without locks.
func newQueue(buckets ...tokenBucket) *queue {
	return &queue{shard: &shard{engine: &engine{maxQueued: 1 << 30}}, buckets: buckets, alarm: bucket.Never}
}

func newWalk(t *testing.T, seed uint64, buckets int) *walk {
	w := &walk{
		t: t, random: rand.New(rand.NewPCG(seed, uint64(buckets))),
		queue: newQueue(), ref: &refQueue{}, twins: map[*request]*refRequest{}, dropped: map[int]int{},
	}
	for range buckets {
		rate, burst := w.rate(), 1+w.random.Int64N(20)
		m := bucket.Start(0, rate, burst)
		w.queue.buckets = append(w.queue.buckets, tokenBucket{meter: &m})
		w.ref.buckets = append(w.ref.buckets, newRefBucket(rate, burst))
	}
	return w
}

func (w *walk) rate() float64 {
	return someRates[w.random.IntN(len(someRates))] * (0.5 + w.random.Float64()) / 1.5
}

func (w *walk) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%d: ", w.now)+fmt.Sprintf(format, args...))
	if len(w.log) > 12 {
		w.log = w.log[1:]
	}
}

// settle settles both, and compares which requests are queued, and the tokens.
func (w *walk) settle() {
	w.queue.settle(w.now)
	w.ref.settle(w.now)
	require.Equal(w.t, len(w.ref.queued), w.queue.requests.Len(), "granted too early or too late: %q", w.log)
	for i, r := range w.queued() {
		require.Same(w.t, w.ref.queued[i], w.twins[r], "%q", w.log)
	}
	require.InDelta(w.t, w.ref.from, w.queue.from, 1, "%q", w.log)
	w.queue.from = w.ref.from
	for i, b := range w.ref.buckets {
		want, _ := b.tokens.Float64()
		if b.unlimited {
			want = float64(b.burst)
		}
		if len(w.ref.queued) == 0 {
			got := w.queue.buckets[i].state("", w.now).Tokens
			require.InDelta(w.t, want, got, 1e-9+1e-9*max(want, -want), "tokens: %q", w.log)
		}
	}
}

func (w *walk) queued() (all []*request) {
	for e := w.queue.requests.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*request))
	}
	return all
}

func (w *walk) costs() []int64 {
	costs := make([]int64, len(w.queue.buckets))
	for i := range costs {
		costs[i] = w.random.Int64N(1 + w.ref.buckets[i].burst)
		if w.random.IntN(3) > 0 {
			costs[i] = min(costs[i], 1)
		}
	}
	return costs
}

// step makes a random call at a later time.
func (w *walk) step() {
	slowest := 1e-3
	for _, b := range w.ref.buckets {
		if r, _ := b.rate.Float64(); r > 0 {
			slowest = min(slowest, r)
		}
	}
	w.now += 1 + w.random.Int64N(1+int64(min(3/slowest, 1e15)))
	w.settle()
	i := w.random.IntN(len(w.queue.buckets))
	meter, ref := w.queue.buckets[i].meter, w.ref.buckets[i]
	switch w.random.IntN(14) {
	default:
		w.takeNow(w.costs())
		return
	case 4, 5, 6:
		w.enter(w.costs())
		return
	case 7, 8:
		if len(w.requests) == 0 {
			return
		}
		at := w.random.IntN(len(w.requests))
		r := w.requests[at]
		if w.random.IntN(2) == 0 {
			w.adjust(r, w.costs())
			break
		}
		w.requests = append(w.requests[:at], w.requests[at+1:]...)
		if due := w.queue.dueOf(r); r.state == queued && due != bucket.Never && w.random.IntN(2) == 0 { // at its turn
			w.now = due
			w.settle()
		}
		w.drop(r)
	case 9:
		rate := w.rate()
		switch w.random.IntN(8) {
		case 0:
			rate = 0
		case 1:
			rate = Unlimited
		}
		w.logf("rate %g", rate)
		if meter.SetRate(w.now, rate) {
			w.queue.buckets[i].mark = meter.Fill(w.now)
		}
		ref.setRate(rate)
	case 10:
		burst := 1 + w.random.Int64N(20)
		w.logf("burst %d", burst)
		meter.SetBurst(w.now, burst)
		ref.setBurst(burst)
	case 11:
		w.logf("fill")
		w.queue.buckets[i].mark = meter.Fill(w.now)
		ref.fill()
	case 12:
		until := w.now + w.random.Int64N(1+int64(min(5/slowest, 1e15)))
		w.logf("pause until %d", until)
		meter.PauseFor(w.now, time.Duration(until-w.now))
		ref.pause(w.now, until)
	}
	w.queue.changed(w.now)
	w.ref.from = max(w.ref.from, w.now)
	w.settle()
}

func (w *walk) takeNow(costs []int64) {
	want := len(w.ref.queued) == 0
	for i, b := range w.ref.buckets {
		want = want && b.has(costs[i], w.now)
	}
	got := w.queue.takeNow(w.now, costs)
	w.logf("take %v: %v", costs, got)
	require.Equal(w.t, want, got, "%q", w.log)
	for i, b := range w.ref.buckets {
		if want {
			b.take(costs[i])
		}
	}
}

// enter compares what is forecast for a request and for those ahead of it, and queues it.
func (w *walk) enter(costs []int64) {
	w.logf("enter %v", costs)
	if len(w.ref.queued) == 0 {
		w.ref.from = w.now
	}
	future := w.ref.clone()
	for i, p := range future.queued {
		future.queued[i] = &refRequest{costs: p.costs, at: bucket.Never}
	}
	last := &refRequest{costs: costs, at: bucket.Never}
	future.queued = append(future.queued, last)
	all := future.queued
	future.settle(bucket.Never - 1)
	w.same(last.at, w.queue.dueNext(costs, w.now))
	for i, r := range w.queued() {
		w.same(all[i].at, w.queue.dueOf(r))
	}

	r, twin := &request{costs: slices.Clone(costs)}, &refRequest{costs: costs, at: bucket.Never}
	w.ref.queued = append(w.ref.queued, twin)
	w.twins[r] = twin
	w.requests = append(w.requests, r)
	w.queue.enter(w.now, r, bucket.Never)
	if r.state == granted {
		w.queue.from = w.now // the request was not queued
	}
	w.settle()
	if w.random.IntN(8) == 0 {
		w.drop(r)
		w.requests = w.requests[:len(w.requests)-1]
		w.ref.from = max(w.ref.from, w.now)
		w.settle()
	}
}

func (w *walk) same(want, got int64) {
	if want == bucket.Never {
		require.EqualValues(w.t, int64(bucket.Never), got, "%q", w.log)
		return
	}
	require.InDelta(w.t, want-w.now, got-w.now, 1+1e-12*float64(want-w.now), "due: %q", w.log)
}

// adjust changes the cost of a request; if it has its tokens, the new cost is lower.
func (w *walk) adjust(r *request, costs []int64) {
	w.logf("adjust %v to %v, queued: %v", r.costs, costs, r.state == queued)
	twin := w.twins[r]
	for i, b := range w.ref.buckets {
		if r.state == granted {
			costs[i] = min(costs[i], twin.costs[i])
		}
		if r.state == granted && r.costs[i] != untaken {
			b.giveBack(twin.costs[i] - costs[i])
		}
	}
	twin.costs = slices.Clone(costs)
	w.queue.adjust(r, costs)
}

// drop takes a request out of the queue, or gives its tokens back if its turn is now.
func (w *walk) drop(r *request) {
	twin := w.twins[r]
	turn := cmp.Compare(w.now, twin.at)
	w.logf("drop %v, turn %d", r.costs, turn)
	w.dropped[turn]++
	for i, b := range w.ref.buckets {
		if turn == 0 && r.costs[i] != untaken {
			b.giveBack(twin.costs[i])
		}
	}
	w.ref.queued = slices.DeleteFunc(w.ref.queued, func(other *refRequest) bool { return other == twin })
	w.queue.drop(w.now, r, nil)
}

// The engine does what an exact token bucket does, with one bucket and with several.
func TestModelTokenBucket(t *testing.T) {
	steps, seeds := 400, 4
	if Long {
		steps, seeds = 3000, 20
	}
	for _, buckets := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("buckets=%d", buckets), func(t *testing.T) {
			dropped := map[int]int{}
			for seed := range uint64(seeds) {
				w := newWalk(t, seed, buckets)
				for range steps {
					w.step()
				}
				for turn := -1; turn <= 1; turn++ {
					dropped[turn] += w.dropped[turn]
				}
			}
			for turn := -1; turn <= 1; turn++ {
				assert.Greater(t, dropped[turn], seeds, "dropped before, at or after the turn: %d", turn)
			}
		})
	}
}

// Tokens that are taken and given back change nothing, even after many times.
func TestGiveBackIsExact(t *testing.T) {
	m := bucket.Start(0, 1.0/3, 10)
	q := newQueue(tokenBucket{meter: &m})
	now := int64(12345)
	require.True(t, q.takeNow(now, []int64{4}))
	before := q.buckets[0].mark
	for range 1000 {
		now += int64(time.Second) / 7
		r := &request{costs: []int64{3}}
		q.enter(now, r, bucket.Never)
		q.drop(now, r, nil)
		if m.Level(before, now) < 10 {
			require.False(t, before.Less(q.buckets[0].mark))
		}
		require.Equal(t, m.Level(before, now), m.Level(q.buckets[0].mark, now))
	}
}

// The table of a shard does the same as a map, even when hashes are equal.
func TestKeyedTable(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 7))
	s := keyShard[int]{meter: bucket.Start(0, 1, 1), maxKeys: 300}
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
			require.True(t, s.meter.Take(&s.slots[at].mark, 0, 1)) // not full
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

// The limiter either does exactly what a command says, or stays as it was and raises a
// signal.
func FuzzCommand(f *testing.F) {
	for _, value := range []string{"50", "12.5", "1e3", "0", "-0", "-1", "", " 7 ", "Inf", "NaN", "Infinity", "1e400", "-1e400", "1e", "0x1p4", "0x10", "1_000", "1,5", ".5", "5.",
		"+3", "rate.limit.burst:3"} {
		for _, command := range numberCommands {
			f.Add(command + ":" + value)
			f.Add("app." + command + ":" + value)
		}
	}
	f.Add(CommandReset)
	f.Fuzz(func(t *testing.T, name string) {
		sink := signals.NewSink(signals.SinkOptions{})
		l, err := New(core.Rate{PerSecond: 10, Burst: 5}, Options{Sink: sink})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		sink.Raise(name)
		rate, burst := l.Rate(), l.Burst()
		if !(rate == 0 || rate >= bucket.MinRate && rate <= bucket.MaxRate) || burst < 1 || int64(burst) > bucket.MaxBurst {
			t.Fatalf("%q: rate %g, burst %d", name, rate, burst)
		}
		applied, rejected := sink.Has(RateApplied.Name()) || sink.Has(BurstApplied.Name()), sink.Has(CommandRejected.Name())
		if name == RateApplied.Name() || name == BurstApplied.Name() || name == CommandRejected.Name() {
			return
		}
		command, value := parseCommand(name)
		if is := command != "" && command != CommandReset; is != (applied || rejected) || applied && rejected {
			t.Fatalf("%q: command %q, applied %v, rejected %v", name, command, applied, rejected)
		}
		if !applied && (rate != 10 || burst != 5) {
			t.Fatalf("%q changed something without a word", name)
		}
		if !applied {
			return
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%q was taken for a number", value)
		}
		want := map[string]float64{
			CommandSet: n, CommandIncrease: 10 + n, CommandDecrease: max(10-n, 1), CommandBurst: float64(int64(n)),
		}[command]
		got := rate
		if command == CommandBurst {
			got = float64(burst)
		}
		if got != want {
			t.Fatalf("%q: %g, not %g", name, got, want)
		}
	})
}

// Long says that model tests take their long form.
var Long = os.Getenv("EPHEMERAL_LONG") != ""
