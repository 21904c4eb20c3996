package ratelimit

import (
	"context"
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// KeyedOptions configure a [Keyed]. The zero value is the default.
type KeyedOptions struct {
	// Name is the key of the signals that it raises, and of commands that are for
	// it alone. "" means "ratelimit".
	Name string
	// Burst is how many tokens the bucket of each key holds; 0 means 20.
	Burst int
	// MaxKeys is how many keys it remembers; 0 means 65,536, and 2^30 is the most. If
	// it is 8192 or more, the keys are spread over up to 64 parts, each of which has
	// its share of MaxKeys, rounded up.
	MaxKeys int
	// MaxWaiting is how many may wait, for all keys together; 0 means 10,000.
	MaxWaiting int
	// NoControl makes it deaf to commands on the sink.
	NoControl bool
	// Sink is where it raises its signals and hears commands; nil means one of its
	// own.
	Sink *core.Sink
}

// A Keyed is a limiter for each key, all with the same rate and burst: so many
// requests of each client. Make one with [NewKeyed]. All methods are safe for
// concurrent use, and as those of a [Limiter] where they have the same name.
//
// Only keys that have used something lately are remembered: a key whose bucket is full
// again is as good as a new one, and its memory goes to the next that is new. A key
// costs its own size and some 50 bytes. There are at most MaxKeys. When
// as many are in use and another comes, one of those that are nearest to having a full
// bucket is forgotten (the best of a few that are looked at), and counted as such: it
// starts anew with a full bucket, which is no more than what a client gets who makes
// up a new key. Keys that somebody waits for are not forgotten. It takes no goroutine, and
// no look at all keys: whoever brings a new key looks at a few.
//
// A Keyed raises the signals about changes, but not [SignalLimited]: it may be limited
// for one key and not for another.
type Keyed[K comparable] struct {
	name        string
	sink        *core.Sink
	unsubscribe func()
	begin       time.Time
	maxWaiting  int64
	waiting     atomic.Int64
	seed        maphash.Seed
	shards      []shard[K]
	changes     sync.Mutex // who holds it changes all shards
}

// A shard has its part of the keys. They are in a table of its own rather than in a map,
// which would hash every key once more than it takes to find the shard.
type shard[K comparable] struct {
	_  cacheLine
	mu sync.Mutex

	meter   meter
	heads   []int32 // the first slot of each hash; a power of two of them
	slots   []slot[K]
	free    []int32
	hand    int
	maxKeys int
	rooms   map[int32]*keyRoom // by slot

	counts    counts
	dropped   uint64
	forgotten uint64
	closed    bool
}

// A slot has what there is to know about a key.
type slot[K comparable] struct {
	key  K
	mark amount
	hash uint32
	next int32 // the next slot for the same head, or none
	used bool
	wait bool // has a room, which has the mark
}

// A keyRoom is there while somebody waits for a key.
type keyRoom struct {
	room
	bucket [1]bucket
	at     int32 // its slot
	users  int   // calls that will look at it again
}

// none is no slot.
const none int32 = -1

const (
	defaultMaxKeys = 1 << 16
	mostKeys       = 1 << 30
	mostShards     = 64
	fewKeys        = 8192 // fewer are in one shard: the more shards, the less even they are

	// sweep is how many slots a new key looks at for one that is full again; at
	// least 2, so that they are found faster than they come. When it needs one, it
	// looks at more.
	sweep     = 2
	sweepMore = 8
)

// NewKeyed makes a limiter of so many tokens per second for each key, or says what is
// wrong. It starts no goroutine; unless told not to, it subscribes to commands on the
// sink.
func NewKeyed[K comparable](rate float64, opts KeyedOptions) (*Keyed[K], error) {
	rate, err := checkRate(rate)
	if err != nil {
		return nil, err
	}
	if opts.Name == "" {
		opts.Name = defaultName
	}
	if opts.Burst == 0 {
		opts.Burst = defaultBurst
	}
	if err := checkBurst("Burst", opts.Burst); err != nil {
		return nil, err
	}
	if opts.MaxKeys == 0 {
		opts.MaxKeys = defaultMaxKeys
	}
	if opts.MaxKeys < 1 || opts.MaxKeys > mostKeys {
		return nil, fmt.Errorf("ratelimit: MaxKeys must be at least 1 and at most %d, not %d", mostKeys, opts.MaxKeys)
	}
	if err := checkMaxWaiting(&opts.MaxWaiting); err != nil {
		return nil, err
	}
	if opts.Sink == nil {
		opts.Sink = core.NewSink(core.SinkOptions{})
	}
	k := &Keyed[K]{
		name: opts.Name, sink: opts.Sink, unsubscribe: func() {},
		begin: time.Now(), maxWaiting: int64(opts.MaxWaiting), seed: maphash.MakeSeed(),
	}
	n := 1
	if opts.MaxKeys >= fewKeys {
		n = shardsFor(runtime.GOMAXPROCS(0))
	}
	k.shards = make([]shard[K], n)
	for i := range k.shards {
		k.shards[i].meter = newMeter(0, rate, int64(opts.Burst))
		k.shards[i].maxKeys = (opts.MaxKeys + n - 1) / n
		k.shards[i].grow()
		k.shards[i].rooms = map[int32]*keyRoom{}
	}
	if !opts.NoControl {
		k.unsubscribe = k.sink.Subscribe(commandPattern, func(s core.Signal) {
			if s.Key == "" || s.Key == k.name {
				heed(k.sink, (*keyedTarget[K])(k), k.name, s)
			}
		})
	}
	return k, nil
}

// shardsFor is a power of two, some times as large as what may run at once.
func shardsFor(procs int) int {
	n := 1
	for n < 4*procs && n < mostShards {
		n *= 2
	}
	return n
}

func (k *Keyed[K]) now() int64 { return int64(time.Since(k.begin)) }

// shard returns where the key is, and by which hash.
func (k *Keyed[K]) shard(key K) (s *shard[K], hash uint32) {
	if !same(key, key) { // it would never be found again
		panic("ratelimit: the key does not equal itself")
	}
	h := maphash.Comparable(k.seed, key)
	return &k.shards[h&uint64(len(k.shards)-1)], uint32(h >> 32)
}

func same[K comparable](a, b K) bool { return a == b }

// Allow takes a token of the key if there is one and nobody waits for it.
func (k *Keyed[K]) Allow(key K) bool { return k.AllowN(key, 1) }

// AllowN takes n tokens of the key if there are as many and nobody waits.
func (k *Keyed[K]) AllowN(key K, n int) bool {
	if n < 0 {
		panic("ratelimit: AllowN needs a number of tokens that is not negative")
	}
	s, hash := k.shard(key)
	now := k.now()
	s.mu.Lock()
	ok, room := s.take(key, hash, now, int64(n))
	if room != nil {
		return room.allow(now, []int64{int64(n)})
	}
	if ok {
		s.counts.allowed++
	} else {
		s.counts.denied++
	}
	s.mu.Unlock()
	return ok
}

// Wait waits for a token of the key; see [Limiter.WaitN].
func (k *Keyed[K]) Wait(ctx context.Context, key K) error { return k.WaitN(ctx, key, 1) }

// WaitN takes n tokens of the key, and waits until there are as many; see
// [Limiter.WaitN]. The lines of different keys do not wait for each other.
func (k *Keyed[K]) WaitN(ctx context.Context, key K, n int) error {
	if n < 0 {
		panic("ratelimit: WaitN needs a number of tokens that is not negative")
	}
	s, hash := k.shard(key)
	if ctx.Err() != nil {
		s.mu.Lock()
		s.counts.cancelled++
		s.mu.Unlock()
		return context.Cause(ctx)
	}
	now := k.now()
	s.mu.Lock()
	ok, room := s.take(key, hash, now, int64(n))
	if ok {
		s.counts.allowed++
		s.mu.Unlock()
		return nil
	}
	err := s.check(int64(n))
	if err == nil && room == nil {
		room, err = k.open(s, key, hash, now)
	}
	if err != nil {
		s.counts.denied++
		s.mu.Unlock()
		return err
	}
	room.users++
	s.mu.Unlock()
	defer s.leave(room)
	return room.wait(ctx, newPlace(n))
}

// check says why n tokens can never be had.
func (s *shard[K]) check(n int64) error {
	switch {
	case s.closed:
		return errClosed
	case n > s.meter.burst && s.meter.rate != Unlimited:
		return ErrExceedsBurst
	}
	return nil
}

// open makes the room for a key, whose bucket is there from then on.
func (k *Keyed[K]) open(s *shard[K], key K, hash uint32, now int64) (*keyRoom, error) {
	at := s.find(key, hash)
	if at == none {
		at = s.add(key, hash, now)
	}
	if at == none {
		return nil, errKeys
	}
	r := &keyRoom{at: at, room: room{
		name:       k.name,
		mu:         &s.mu,
		begin:      k.begin,
		maxWaiting: k.maxWaiting,
		waiting:    &k.waiting,
		counts:     &s.counts,
		alarm:      never,
	}}
	r.bucket[0] = bucket{&s.meter, s.slots[at].mark}
	r.line.buckets = r.bucket[:]
	s.slots[at].wait = true
	s.rooms[at] = r
	return r, nil
}

// leave closes the room when the last has left it.
func (s *shard[K]) leave(r *keyRoom) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.users--; r.users == 0 {
		s.slots[r.at].mark, s.slots[r.at].wait = r.bucket[0].mark, false
		delete(s.rooms, r.at)
	}
}

// find returns the slot of the key, or none.
func (s *shard[K]) find(key K, hash uint32) int32 {
	at := *s.head(hash)
	for at != none && (s.slots[at].hash != hash || s.slots[at].key != key) {
		at = s.slots[at].next
	}
	return at
}

func (s *shard[K]) head(hash uint32) *int32 { return &s.heads[hash&uint32(len(s.heads)-1)] }

// grow doubles the heads.
func (s *shard[K]) grow() {
	s.heads = make([]int32, max(8, 2*len(s.heads)))
	for i := range s.heads {
		s.heads[i] = none
	}
	for at := range s.slots {
		if s.slots[at].used {
			s.link(int32(at))
		}
	}
}

func (s *shard[K]) link(at int32) {
	head := s.head(s.slots[at].hash)
	s.slots[at].next, *head = *head, at
}

// take takes n tokens now or not at all, or says in which room that is decided.
func (s *shard[K]) take(key K, hash uint32, now, n int64) (ok bool, decides *keyRoom) {
	at := s.find(key, hash)
	if at != none {
		found := &s.slots[at]
		if found.wait {
			return false, s.rooms[at]
		}
		v := s.meter.take(&found.mark, now, n)
		if v == unclear {
			v = s.takeSlow(&found.mark, now, n)
		}
		return v == taken, nil
	}
	mark := lowest
	if s.takeSlow(&mark, now, n) != taken {
		return false, nil
	}
	if mark != lowest {
		if at = s.add(key, hash, now); at == none {
			return false, nil
		}
		s.slots[at].mark = mark
	}
	return true, nil
}

func (s *shard[K]) takeSlow(mark *amount, now, n int64) verdict {
	if s.closed {
		return short
	}
	return s.meter.takeSlow(mark, now, n)
}

// add finds a slot for a key that is new; none, if somebody waits for every key that
// it looked at.
func (s *shard[K]) add(key K, hash uint32, now int64) (at int32) {
	best := s.look(now, sweep, none)
	if len(s.free) == 0 && len(s.slots) >= s.maxKeys {
		best = s.look(now, sweepMore, best)
		if len(s.free) == 0 {
			if best == none {
				return none
			}
			s.drop(best)
			s.forgotten++
		}
	}
	if last := len(s.free) - 1; last >= 0 {
		at = s.free[last]
		s.free = s.free[:last]
	} else {
		at = int32(len(s.slots))
		s.slots = append(s.slots, slot[K]{})
		if len(s.slots) > len(s.heads) {
			s.grow()
		}
	}
	s.slots[at] = slot[K]{key: key, mark: lowest, hash: hash, used: true}
	s.link(at)
	return at
}

// look looks at the next n slots, and drops the keys whose bucket is full. It returns
// the one of them and best that is nearest to that, or none.
func (s *shard[K]) look(now int64, n int, best int32) int32 {
	full := s.meter.fill(now).max(s.meter.floor)
	for range min(n, len(s.slots)) {
		if s.hand++; s.hand >= len(s.slots) {
			s.hand = 0
		}
		at := int32(s.hand)
		it := &s.slots[at]
		switch {
		case !it.used || it.wait:
		case !full.less(it.mark):
			s.drop(at)
			s.dropped++
		case best == none || it.mark.less(s.slots[best].mark):
			best = at
		}
	}
	return best
}

func (s *shard[K]) drop(at int32) {
	link := s.head(s.slots[at].hash)
	for *link != at {
		link = &s.slots[*link].next
	}
	*link = s.slots[at].next
	s.slots[at] = slot[K]{}
	s.free = append(s.free, at)
}

// Tokens is how many tokens are in the bucket of the key, to 2^-64 of one.
func (k *Keyed[K]) Tokens(key K) float64 {
	s, hash := k.shard(key)
	now := k.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	mark := lowest
	if at := s.find(key, hash); at != none {
		mark = s.slots[at].mark
		if r := s.rooms[at]; r != nil {
			mark = r.bucket[0].mark
		}
	}
	return s.meter.level(mark, now).float()
}

// Delay is how long it is, as things stand, until Allow says yes to the key if nobody
// else takes its tokens: what a server says as Retry-After. It is [InfDuration] if the
// rate is 0 or it is closed.
func (k *Keyed[K]) Delay(key K) time.Duration {
	s, hash := k.shard(key)
	now, due := k.now(), int64(never)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(key, hash)
	switch {
	case s.closed:
	case at == none:
		due = (&bucket{&s.meter, lowest}).due(1, now)
	case s.slots[at].wait:
		due = s.rooms[at].line.dueNext([]int64{1}, now)
	default:
		due = (&bucket{&s.meter, s.slots[at].mark}).due(1, now)
	}
	if due == never {
		return InfDuration
	}
	return time.Duration(max(0, due-now))
}

// Name is [KeyedOptions.Name].
func (k *Keyed[K]) Name() string { return k.name }

// Sink is where it raises its signals and hears commands.
func (k *Keyed[K]) Sink() *core.Sink { return k.sink }

// Rate is the rate in tokens per second.
func (k *Keyed[K]) Rate() float64 {
	s := &k.shards[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meter.rate
}

// Burst is how many tokens the bucket of a key holds.
func (k *Keyed[K]) Burst() int {
	s := &k.shards[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.meter.burst)
}

// SetRate changes the rate for all keys; see [Limiter.SetRate]. What it costs does not
// depend on how many keys there are.
func (k *Keyed[K]) SetRate(rate float64) error {
	rate, err := checkRate(rate)
	if err == nil {
		(*keyedTarget[K])(k).changeRate(k.sink, func(float64) (float64, string) { return rate, "" })
	}
	return err
}

// SetBurst changes the burst for all keys; see [Limiter.SetBurst].
func (k *Keyed[K]) SetBurst(burst int) error {
	err := checkBurst("SetBurst", burst)
	if err == nil {
		(*keyedTarget[K])(k).changeBurst(k.sink, int64(burst))
	}
	return err
}

// PauseFor lets nothing pass for any key; see [Limiter.PauseFor].
func (k *Keyed[K]) PauseFor(d time.Duration) {
	k.changes.Lock()
	defer k.changes.Unlock()
	k.change(func(s *shard[K], now int64) { s.meter.pause(now, now+max(0, min(int64(d), forward))) })
}

// Reset fills the buckets of all keys, and so forgets those that nobody waits for. It
// looks at all of them.
func (k *Keyed[K]) Reset() {
	k.changes.Lock()
	defer k.changes.Unlock()
	k.change(func(s *shard[K], now int64) {
		for at := range s.slots {
			if it := &s.slots[at]; it.used && !it.wait {
				s.drop(int32(at))
				s.dropped++
			}
		}
		s.meter.floor = lowest
		for _, r := range s.rooms {
			r.line.fill(now)
		}
	})
}

// Close stops heeding commands. Those who wait return an error that is
// [core.ErrClosed], and so does whoever comes later; Allow says no. It returns nil.
func (k *Keyed[K]) Close() error {
	k.unsubscribe()
	k.changes.Lock()
	defer k.changes.Unlock()
	for i := range k.shards {
		s := &k.shards[i]
		var done places
		now := k.now()
		s.mu.Lock()
		s.closed = true
		s.meter.span = 0
		for _, r := range s.rooms {
			done.join(r.close(now))
			r.set(now)
		}
		s.mu.Unlock()
		wake(done)
	}
	return nil
}

// change changes all shards, one after the other, and lets those wait anew who are in
// line. It reports whether it did, which it does not after Close. The caller holds
// changes, so that all shards see the same changes in the same order.
func (k *Keyed[K]) change(fn func(s *shard[K], now int64)) (changed bool) {
	for i := range k.shards {
		s := &k.shards[i]
		var done places
		now := k.now()
		s.mu.Lock()
		if !s.closed {
			for _, r := range s.rooms {
				done.join(r.settle(now))
			}
			fn(s, now)
			for _, r := range s.rooms {
				done.join(r.change(now, func() {}))
				r.set(now)
			}
			changed = true
		}
		s.mu.Unlock()
		wake(done)
	}
	return changed
}

// keyedTarget is what commands are for.
type keyedTarget[K comparable] Keyed[K]

func (t *keyedTarget[K]) changeRate(on core.Raiser, next func(rate float64) (float64, string)) (rule string) {
	k := (*Keyed[K])(t)
	k.changes.Lock()
	rate, rule := next(k.Rate())
	change := Change{rate, k.Burst()}
	changed := rule == "" && k.change(func(s *shard[K], now int64) { s.meter.setRate(now, rate) })
	k.changes.Unlock()
	if changed {
		RateApplied.Raise(on, k.name, change)
	}
	return rule
}

func (t *keyedTarget[K]) changeBurst(on core.Raiser, burst int64) {
	k := (*Keyed[K])(t)
	k.changes.Lock()
	changed := k.change(func(s *shard[K], now int64) { s.meter.setBurst(now, burst) })
	change := Change{k.Rate(), int(burst)}
	k.changes.Unlock()
	if changed {
		BurstApplied.Raise(on, k.name, change)
	}
}

func (t *keyedTarget[K]) Reset() { (*Keyed[K])(t).Reset() }

// KeyedStats are the counters of a [Keyed]. Every request that was ever made is in
// exactly one of the first four.
type KeyedStats struct {
	Allowed   uint64 `json:"allowed"`   // have got what they asked for
	Denied    uint64 `json:"denied"`    // were refused when they came
	Waiting   int    `json:"waiting"`   // stand in line
	Cancelled uint64 `json:"cancelled"` // have given it back, or gave up, be it because of Close

	Delayed   uint64  `json:"delayed"`   // have got it later than they asked, whatever became of it
	Keys      int     `json:"keys"`      // remembered
	Dropped   uint64  `json:"dropped"`   // keys no longer remembered, because their bucket was full
	Forgotten uint64  `json:"forgotten"` // keys no longer remembered, because there were too many
	Rate      float64 `json:"rate"`      // tokens per second; [Unlimited] if it is
	Burst     int     `json:"burst"`
}

// Stats returns the counters, read as one cut, for which it locks everything.
func (k *Keyed[K]) Stats() (st KeyedStats) {
	now := k.now()
	var done places
	for i := range k.shards {
		k.shards[i].mu.Lock()
	}
	for i := range k.shards {
		s := &k.shards[i]
		for _, r := range s.rooms {
			done.join(r.settle(now))
			r.set(now)
			st.Waiting += r.line.length
		}
		st.Allowed += s.counts.allowed
		st.Denied += s.counts.denied
		st.Cancelled += s.counts.cancelled
		st.Delayed += s.counts.delayed
		st.Keys += len(s.slots) - len(s.free)
		st.Dropped += s.dropped
		st.Forgotten += s.forgotten
		st.Rate, st.Burst = s.meter.rate, int(s.meter.burst)
	}
	for i := range k.shards {
		k.shards[i].mu.Unlock()
	}
	wake(done)
	return st
}
