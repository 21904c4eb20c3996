package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Calls in bursts, which race with each other and with the bodies. The outcome is not known in detail, but the
// promises must hold: the books balance at every step; no limit is exceeded, neither in all nor of a key, a lane or
// a class; operations of one key keep their order; when nothing moves any more, nothing waits that could run; and in
// the end every accepted item has been finalized once. Of four coordinators one has lanes, one keys, one both.
func TestEngineRandom(t *testing.T) {
	const perSeed = 500
	for seed := range uint64(core.Often(800, 200)) {
		synctest.Test(t, func(t *testing.T) { newRandomDriver(t, seed).run(perSeed) })
		if t.Failed() {
			return
		}
	}
}

type randomDriver struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	opts   core.Options
	sink   *core.Sink
	c      *core.Coordinator[uint64]
	keyed  bool
	places crowd
	held   []func()
	unpins []func()

	limit   int          // in force
	surplus int          // bodies that may still run from when the limit was higher
	running atomic.Int64 // as the bodies count themselves
	most    atomic.Int64
	ids     struct {
		sync.Mutex
		accepted  []core.OperationID
		finalized map[core.OperationID]int
	}
	others sync.WaitGroup
}

func newRandomDriver(t *testing.T, seed uint64) *randomDriver {
	d := &randomDriver{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 2))}
	pick := func(values ...int) int { return values[d.random.IntN(len(values))] }
	d.ids.finalized = make(map[core.OperationID]int)
	d.sink = core.NewSink(core.SinkOptions{MaxAge: time.Duration(pick(-1, 1)) * time.Second})
	d.limit = pick(1, 2, 8)
	d.opts = core.Options{
		MaxConcurrency: d.limit, MaxQueued: pick(1, 2, 4, 64), DropOldest: pick(0, 0, 1) == 1,
		MaxTracked: pick(-1, 1, 10, 100), MaxAge: time.Duration(pick(-1, 50)) * time.Millisecond,
		EchoCapacity: pick(-1, 10), EchoAge: time.Second,
		Sink: d.sink, CancelOn: "stop", DeferOn: "wait.*", ResumeOn: "go", MaxDefer: time.Duration(pick(-1, 20)) * time.Millisecond,
	}
	d.keyed = seed&1 != 0
	d.places.perKey = 1 << 30
	if d.keyed {
		d.opts.MaxPerKey = pick(0, 1, 2)
		d.places.perKey = max(1, d.opts.MaxPerKey)
	}
	if seed&2 != 0 {
		d.opts.Lanes = []core.Lane{
			{Name: "hot", Limit: pick(0, 1, 3), Depth: pick(0, 1)},
			{Name: "normal", DeferOn: "lane.wait", Depth: pick(0, 2)},
			{Name: "slow", Limit: 1, CancelOn: "lane.stop"},
		}
		d.opts.Ageing = time.Duration(pick(-1, 1, 10)) * time.Millisecond
		d.places.limits = []int{d.opts.Lanes[0].Limit, 0, 1}
	}
	if seed&4 != 0 {
		d.opts.Classes = []core.Class{{Name: "heavy", Limit: pick(1, 2, 4)}, {Name: "light"}}
		d.places.heavy = d.opts.Classes[0].Limit
	}
	var err error
	if d.keyed {
		d.c, err = core.NewKeyedCoordinator(d.key, d.body, d.opts)
	} else {
		d.c, err = core.NewCoordinator(d.body, d.opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.c.OnFinalized(func(s core.Snapshot) {
		d.ids.Lock()
		defer d.ids.Unlock()
		d.ids.finalized[s.ID]++
		if s.Status&core.StatusFinished == 0 {
			t.Errorf("seed %d: operation %d was finalized while %v", seed, s.ID, s.Status)
		}
	})
	return d
}

// key and lane are those of an item.
func (d *randomDriver) key(item uint64) string {
	if !d.keyed {
		return ""
	}
	if key := item >> 8 % 5; key > 0 {
		return fmt.Sprint(key)
	}
	return ""
}

func (d *randomDriver) lane(item uint64) int {
	if len(d.opts.Lanes) == 0 {
		return 0
	}
	return int(item >> 16 % 3)
}

// door returns where to enqueue an item.
func (d *randomDriver) door(item uint64) *core.Coordinator[uint64] {
	c := d.c
	if len(d.opts.Lanes) > 0 {
		c = c.Lane(d.opts.Lanes[d.lane(item)].Name)
	}
	if class := d.class(item); class != "" {
		c = c.Class(class)
	}
	return c
}

// class is that of an item, or "".
func (d *randomDriver) class(item uint64) string {
	if n := int(item >> 24 % 3); n < len(d.opts.Classes) {
		return d.opts.Classes[n].Name
	}
	return ""
}

func (d *randomDriver) fatalf(format string, args ...any) {
	d.t.Helper()
	d.c.Close() // or the bubble would report the goroutines, and not this
	d.others.Wait()
	d.t.Fatalf("seed %d, options %+v: %s", d.seed, d.opts, fmt.Sprintf(format, args...))
}

func (d *randomDriver) body(ctx context.Context, seed uint64) error {
	if n := d.running.Add(1); n > d.most.Load() {
		d.most.Store(n)
	}
	defer d.running.Add(-1)
	op := core.OperationFrom(ctx)
	leave, err := d.places.enter(d.key(seed), d.lane(seed), d.class(seed), op.ID())
	if err != nil {
		d.t.Errorf("seed %d, options %+v: %v", d.seed, d.opts, err)
	}
	defer leave()
	switch random := rand.New(rand.NewPCG(seed, 3)); random.IntN(16) {
	case 0:
		return errors.New("failed on purpose")
	case 1:
		panic("panicked on purpose")
	case 2:
		runtime.Goexit()
	case 3:
		<-ctx.Done()
		return ctx.Err()
	case 4:
		op.Raise([]string{"stop", "wait.own", "go"}[random.IntN(3)])
	case 5:
		op.Hold("wait.held", 0) // until it finishes
		time.Sleep(time.Millisecond)
	case 6:
		op.Raise("stop")
		op.Retract("stop")
	case 7:
		item := random.Uint64()
		if id, err := d.door(item).TryEnqueue(context.Background(), item); err == nil {
			d.accepted(id)
		}
		op.SetKey("another")
	case 8:
		if err := d.c.Drain(ctx); err != core.ErrWouldDeadlock {
			d.t.Errorf("seed %d: Drain from a body: got %v", d.seed, err)
		}
	case 9:
		op.Set("value", seed)
		d.c.Cancel(op.ID(), nil)
		return ctx.Err()
	case 10, 11, 12:
		select {
		case <-time.After(time.Duration(random.IntN(5000)) * time.Microsecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// accepted returns a check of what Enqueue has returned.
func (d *randomDriver) accepted(id core.OperationID) {
	d.ids.Lock()
	defer d.ids.Unlock()
	d.ids.accepted = append(d.ids.accepted, id)
}

func (d *randomDriver) recent() core.OperationID {
	d.ids.Lock()
	defer d.ids.Unlock()
	if n := len(d.ids.accepted); n > 0 {
		return d.ids.accepted[max(0, n-1-d.random.IntN(40))]
	}
	return 0
}

func (d *randomDriver) run(steps int) {
	for range steps {
		d.step()
		s := d.c.Stats()
		if err := coretest.CheckBooks(s); err != nil {
			d.fatalf("%v", err)
		}
		if s.Tracked > max(0, d.opts.MaxTracked)+200+s.Pinned {
			d.fatalf("%d operations in the window, of which %d pinned; want at most %d and 200 failed ones besides those", s.Tracked, s.Pinned, d.opts.MaxTracked)
		}
		if s.Running > max(d.limit, d.surplus) {
			d.fatalf("%d operations run, want at most %d", s.Running, max(d.limit, d.surplus))
		}
		d.surplus = min(d.surplus, s.Running)
		if d.random.IntN(20) == 0 {
			d.rest()
		}
	}
	d.finish()
}

func (d *randomDriver) step() {
	r := d.random
	switch n := r.IntN(100); {
	case n < 30:
		item := r.Uint64()
		if id, err := d.door(item).TryEnqueue(context.Background(), item); err == nil {
			d.accepted(id)
		}
	case n < 45:
		seed, patience := r.Uint64(), time.Duration(r.IntN(10))*time.Millisecond
		d.others.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if id, err := d.door(seed).Enqueue(ctx, seed); err == nil {
				d.accepted(id)
			}
		})
	case n < 50:
		seed, patience := r.Uint64(), time.Duration(r.IntN(10))*time.Millisecond
		d.others.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			d.door(seed).Do(ctx, seed)
		})
	case n < 56:
		d.c.Cancel(d.recent(), nil)
	case n < 60:
		if unpin, ok := d.c.Pin(d.recent()); ok {
			d.unpins = append(d.unpins, unpin)
		}
	case n < 64:
		if len(d.unpins) > 0 {
			d.unpins[r.IntN(len(d.unpins))]()
		}
	case n < 66:
		d.c.Evict(d.recent())
	case n < 68:
		d.c.Pause()
	case n < 72:
		d.c.Resume()
	case n < 76:
		d.surplus = max(d.surplus, d.limit)
		d.limit = 1 + r.IntN(8)
		if err := d.c.SetMaxConcurrency(d.limit); err != nil {
			d.t.Error(err)
		}
	case n < 80:
		d.sink.Raise([]string{"stop", "wait.for.it", "go", "lane.stop", "lane.wait"}[r.IntN(5)])
	case n < 83:
		d.sink.Retract("*")
	case n < 85:
		d.held = append(d.held, d.sink.Hold("wait.held", "", time.Duration(r.IntN(10))*time.Millisecond))
	case n < 89:
		d.release()
	case n < 91:
		patience := time.Duration(r.IntN(20)) * time.Millisecond
		d.others.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			d.c.Flush(ctx)
		})
	default:
		time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
	}
}

func (d *randomDriver) release() {
	for _, release := range d.held {
		release()
	}
	d.held = nil
}

// rest lets everything come to rest and checks that nothing waits in vain.
func (d *randomDriver) rest() {
	synctest.Wait()
	s := d.c.Stats()
	if got := int(d.running.Load()); got != s.Running {
		d.fatalf("%d bodies run, but Stats says %d", got, s.Running)
	}
	deferred := d.sink.Has("wait.*") || d.c.Has("wait.*")
	if s.Pending == 0 || s.Running >= s.Limit || s.Paused || deferred {
		return
	}
	lines := make(map[string]bool) // of keys, in which an earlier one waits
	for o := range d.c.Operations(core.OperationQuery{Status: core.StatusPending}) {
		if o.Key != "" {
			line := o.Lane + ":" + o.Key
			if lines[line] {
				continue
			}
			lines[line] = true
		}
		lane := slices.IndexFunc(d.opts.Lanes, func(l core.Lane) bool { return l.Name == o.Lane })
		if d.places.couldEnter(o.Key, max(0, lane), o.Class) && (lane != 1 || !d.sink.Has("lane.wait")) {
			d.fatalf("operation %d, of lane %q and key %q, waits though it could run: %v", o.ID, o.Lane, o.Key, s)
		}
	}
}

func (d *randomDriver) finish() {
	d.c.Resume()
	d.release()
	d.sink.Retract("*")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	d.c.Drain(ctx) // bodies may be waiting to be cancelled
	d.c.Close()
	d.others.Wait()
	d.rest()
	s := d.c.Stats()
	if s.Pending+s.Running+s.Tracked+s.Pinned != 0 || !s.Closed {
		d.t.Errorf("seed %d: after Close: got %v, want nothing left", d.seed, s)
	}
	if got := uint64(len(d.ids.finalized)); got != s.Enqueued {
		d.t.Errorf("seed %d: %d operations were finalized, want all %d that were accepted", d.seed, got, s.Enqueued)
	}
	for id, n := range d.ids.finalized {
		if n != 1 {
			d.t.Errorf("seed %d: operation %d was finalized %d times, want once", d.seed, id, n)
		}
	}
}

// crowd checks, from inside of bodies, how many of a key, a lane and a class run, and in
// which order.
type crowd struct {
	perKey int
	limits []int // by lane; 0: none
	heavy  int   // the same of the class of that name

	mu     sync.Mutex
	keys   map[string]int // that run
	lanes  map[int]int
	heavys int
	newest map[string]core.OperationID // by key and lane: who started last
}

// couldEnter reports whether the limits of key, lane and class allow for one more.
func (c *crowd) couldEnter(key string, lane int, class string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if class == "heavy" && c.heavys >= c.heavy {
		return false
	}
	return (key == "" || c.keys[key] < c.perKey) && (len(c.limits) == 0 || c.limits[lane] == 0 || c.lanes[lane] < c.limits[lane])
}

// enter is called by a body that starts, and leave when it ends.
func (c *crowd) enter(key string, lane int, class string, id core.OperationID) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys == nil {
		c.keys, c.lanes, c.newest = make(map[string]int), make(map[int]int), make(map[string]core.OperationID)
	}
	c.keys[key]++
	c.lanes[lane]++
	if class == "heavy" {
		c.heavys++
	}
	place := fmt.Sprint(lane, " ", key)
	switch {
	case key != "" && c.keys[key] > c.perKey:
		err = fmt.Errorf("%d of key %q run, want at most %d", c.keys[key], key, c.perKey)
	case len(c.limits) > 0 && c.limits[lane] > 0 && c.lanes[lane] > c.limits[lane]:
		err = fmt.Errorf("%d of lane %d run, want at most %d", c.lanes[lane], lane, c.limits[lane])
	case class == "heavy" && c.heavys > c.heavy:
		err = fmt.Errorf("%d of class %q run, want at most %d", c.heavys, class, c.heavy)
	case key != "" && c.perKey == 1 && id < c.newest[place]: // ids are in the order in which items were accepted
		err = fmt.Errorf("operation %d of lane %d and key %q starts after %d", id, lane, key, c.newest[place])
	}
	c.newest[place] = id
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keys[key]--
		c.lanes[lane]--
		if class == "heavy" {
			c.heavys--
		}
	}, err
}
