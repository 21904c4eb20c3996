package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Calls in bursts, so that they race with each other and with bodies that do
// whatever bodies do. Nobody can say what comes of it in detail, but the promises
// must hold: the books balance at every step; never more bodies run than may; when
// all has come to rest, nothing waits that could run; and in the end every accepted
// item has been finalized once.
func TestEngineRandom(t *testing.T) {
	const perSeed = 500
	steps := 400_000
	if raceEnabled {
		steps /= 20
	}
	for seed := range uint64(steps / perSeed) {
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
	d.sink = core.NewSink(core.SinkOptions{MaxAge: time.Duration(pick(0, 1)) * time.Second})
	d.limit = pick(1, 2, 8)
	d.opts = core.Options{
		MaxConcurrency: d.limit, MaxQueued: pick(1, 2, 4, 64), DropOldest: pick(0, 0, 1) == 1,
		MaxTracked: pick(-1, 1, 10, 100), MaxAge: time.Duration(pick(-1, 50)) * time.Millisecond,
		EchoCapacity: pick(-1, 10), EchoAge: time.Second,
		Sink: d.sink, CancelOn: "stop", DeferOn: "wait.*", ResumeOn: "go", MaxDefer: time.Duration(pick(-1, 20)) * time.Millisecond,
	}
	c, err := core.NewCoordinator(d.body, d.opts)
	if err != nil {
		t.Fatal(err)
	}
	d.c = c
	c.OnFinalized(func(s core.Snapshot) {
		d.ids.Lock()
		defer d.ids.Unlock()
		d.ids.finalized[s.ID]++
		if s.Status&core.StatusFinished == 0 {
			t.Errorf("seed %d: operation %d was finalized while %v", seed, s.ID, s.Status)
		}
	})
	return d
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
		if id, err := d.c.TryEnqueue(random.Uint64()); err == nil {
			d.accepted(id)
		}
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
		if s.Tracked > max(0, d.opts.MaxTracked)+s.Pinned {
			d.fatalf("%d operations in the window, of which %d pinned; want at most %d besides those", s.Tracked, s.Pinned, d.opts.MaxTracked)
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
		if id, err := d.c.TryEnqueue(r.Uint64()); err == nil {
			d.accepted(id)
		}
	case n < 45:
		seed, patience := r.Uint64(), time.Duration(r.IntN(10))*time.Millisecond
		d.others.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if id, err := d.c.Enqueue(ctx, seed); err == nil {
				d.accepted(id)
			}
		})
	case n < 50:
		seed, patience := r.Uint64(), time.Duration(r.IntN(10))*time.Millisecond
		d.others.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			d.c.Do(ctx, seed)
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
		d.sink.Raise([]string{"stop", "wait.for.it", "go"}[r.IntN(3)])
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
	if s.Pending > 0 && s.Running < s.Limit && !s.Paused && !deferred {
		d.fatalf("operations wait though they could run: %v", s)
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
