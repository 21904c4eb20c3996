package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
)

// Random bodies that wait for each other, beside a reference that finds out by
// trial whether a wait can ever end: it lets everything that does not wait finish,
// starts what then can start, and so on, until nothing moves. A wait must be refused
// if and only if it would not have ended by then.
func TestNestingModel(t *testing.T) {
	seeds := 400
	if raceEnabled || testing.Short() {
		seeds /= 10
	}
	refused := 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			d := newNestDriver(t, seed)
			for range 150 {
				d.step()
			}
			d.finish()
			refused += d.refused
		})
		if t.Failed() {
			return
		}
	}
	if refused < seeds {
		t.Errorf("only %d waits were refused in %d runs: the test does not test much", refused, seeds)
	}
}

// nestOp is an operation, or an item that waits for room.
type nestOp struct {
	n        int
	c        *nestCoordinator
	lane     int
	key      string
	commands chan func(ctx context.Context)

	accepted          atomic.Bool
	id                atomic.Uint64
	started, finished atomic.Bool
	waits             []*nestWait
}

func (o *nestOp) String() string { return fmt.Sprintf("#%d", o.n) }

type nestCoordinator struct {
	*core.Coordinator[*nestOp]
	n     int
	keyed bool
	limit int
	depth int
	lanes []core.Lane
	ops   []*nestOp // that are not finished, in the order they came
}

// nestWait is what an operation waits for: the end of others, or room for one.
type nestWait struct {
	by   *nestOp
	ends []*nestOp
	room *nestOp
	done atomic.Bool
	err  error
}

type nestDriver struct {
	t            *testing.T
	seed         uint64
	random       *rand.Rand
	coordinators []*nestCoordinator
	n            int
	refused      int
	log          []string
}

func newNestDriver(t *testing.T, seed uint64) *nestDriver {
	d := &nestDriver{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 6))}
	for n := range 2 + d.random.IntN(3) {
		c := &nestCoordinator{n: n, keyed: d.random.IntN(2) == 0, limit: 1 + d.random.IntN(3), depth: 1 + d.random.IntN(4)}
		if c.lanes = []core.Lane{{}}; d.random.IntN(2) == 0 {
			c.lanes = []core.Lane{{Name: "a", Limit: d.random.IntN(3)}, {Name: "b", Limit: d.random.IntN(2)}}
		}
		opts := core.Options{Name: fmt.Sprint("c", n), MaxConcurrency: c.limit, MaxQueued: c.depth, MaxTracked: 1000}
		if len(c.lanes) > 1 {
			opts.Lanes = c.lanes
		}
		if c.keyed {
			c.Coordinator = core.Must(core.NewKeyedCoordinator(func(o *nestOp) string { return o.key }, d.body, opts))
		} else {
			c.Coordinator = core.Must(core.NewCoordinator(d.body, opts))
		}
		d.coordinators = append(d.coordinators, c)
	}
	return d
}

func (d *nestDriver) body(ctx context.Context, o *nestOp) error {
	o.id.Store(uint64(core.OperationFrom(ctx).ID()))
	o.accepted.Store(true)
	o.started.Store(true)
	defer o.finished.Store(true)
	for command := range o.commands {
		command(ctx)
	}
	return nil
}

func (d *nestDriver) logf(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

func (d *nestDriver) errorf(format string, args ...any) {
	d.t.Helper()
	d.t.Errorf("seed %d: %s\nafter\n  %s", d.seed, fmt.Sprintf(format, args...), strings.Join(d.log, "\n  "))
}

func (d *nestDriver) newOp(c *nestCoordinator) *nestOp {
	d.n++
	return &nestOp{n: d.n, c: c, lane: d.random.IntN(len(c.lanes)), key: string(rune('x' + d.random.IntN(3))), commands: make(chan func(context.Context))}
}

func (c *nestCoordinator) view(o *nestOp) *core.Coordinator[*nestOp] {
	if name := c.lanes[o.lane].Name; name != "" {
		return c.Lane(name)
	}
	return c.Coordinator
}

func (c *nestCoordinator) find(want func(*nestOp) bool) []*nestOp {
	return slices.DeleteFunc(slices.Clone(c.ops), func(o *nestOp) bool { return !want(o) })
}

// settle lets everything come to rest and brings the lists up to date.
func (d *nestDriver) settle() {
	synctest.Wait()
	for _, c := range d.coordinators {
		c.ops = slices.DeleteFunc(c.ops, func(o *nestOp) bool {
			o.waits = slices.DeleteFunc(o.waits, func(w *nestWait) bool { return w.done.Load() })
			return o.finished.Load()
		})
	}
}

func (d *nestDriver) any(want func(*nestOp) bool) *nestOp {
	var all []*nestOp
	for _, c := range d.coordinators {
		all = append(all, c.find(want)...)
	}
	if len(all) == 0 {
		return nil
	}
	return all[d.random.IntN(len(all))]
}

func (d *nestDriver) step() {
	d.settle()
	c := d.coordinators[d.random.IntN(len(d.coordinators))]
	running := d.any(func(o *nestOp) bool { return o.started.Load() })
	switch n := d.random.IntN(100); {
	case n < 25: // from outside
		o := d.newOp(c)
		if id, err := c.view(o).TryEnqueue(o); err == nil {
			o.accepted.Store(true)
			o.id.Store(uint64(id))
			c.ops = append(c.ops, o)
			d.logf("%v enqueued in c%d, lane %d, key %s", o, c.n, o.lane, o.key)
		}
	case n < 30:
		limit := 1 + d.random.IntN(3)
		d.logf("c%d: limit %d", c.n, limit)
		c.limit = limit
		c.SetMaxConcurrency(limit)
		d.settle()
		d.checkNoneStuck("SetMaxConcurrency")
	case running == nil:
	case n < 50:
		if len(running.waits) == 0 {
			d.logf("%v ends", running)
			close(running.commands)
		}
	case n < 70:
		if target := d.any(func(o *nestOp) bool { return o.accepted.Load() }); target != nil {
			d.wait(&nestWait{by: running, ends: []*nestOp{target}}, func(ctx context.Context) error {
				return target.c.Wait(ctx, core.OperationID(target.id.Load()))
			}, fmt.Sprint("Wait for ", target))
		}
	case n < 75:
		d.wait(&nestWait{by: running, ends: c.find(func(o *nestOp) bool { return o.accepted.Load() })}, c.Flush, fmt.Sprint("Flush of c", c.n))
	default:
		o := d.newOp(c)
		c.ops = append(c.ops, o)
		w := &nestWait{by: running, room: o}
		d.wait(w, func(ctx context.Context) error {
			id, err := c.view(o).Enqueue(ctx, o)
			if err == nil {
				o.id.Store(uint64(id))
				o.accepted.Store(true)
			} else {
				o.finished.Store(true)
			}
			return err
		}, fmt.Sprintf("Enqueue of %v in c%d, lane %d, key %s", o, c.n, o.lane, o.key))
	}
}

// wait lets an operation wait, and compares.
func (d *nestDriver) wait(w *nestWait, call func(ctx context.Context) error, what string) {
	d.t.Helper()
	by := w.by
	// What is over already is no wait, and the own coordinator never is waited for.
	w.ends = slices.DeleteFunc(w.ends, func(o *nestOp) bool { return o.finished.Load() })
	own := w.room == nil && len(w.ends) > 0 && w.ends[0].c == by.c ||
		w.room != nil && w.room.c == by.c && d.full(w.room)
	by.waits = append(by.waits, w)
	want := own || !d.try()[w]
	d.logf("%v in c%d: %s", by, by.c.n, what)
	by.commands <- func(ctx context.Context) {
		go func() {
			w.err = call(ctx)
			w.done.Store(true)
		}()
	}
	synctest.Wait()
	refused := w.done.Load() && errors.Is(w.err, core.ErrWouldDeadlock)
	if w.done.Load() && !refused && w.err != nil {
		d.errorf("%v: got error %v", by, w.err)
	}
	if refused != want {
		d.errorf("%v: refused is %t, want %t", by, refused, want)
	}
	if refused {
		d.refused++
		d.log[len(d.log)-1] += ": refused"
	}
}

// full reports whether there is no room for o.
func (d *nestDriver) full(o *nestOp) bool {
	queued := o.c.find(func(x *nestOp) bool { return x != o && x.lane == o.lane && !x.started.Load() })
	return len(queued) >= o.c.depth
}

// try finds out which waits can end.
func (d *nestDriver) try() (ends map[*nestWait]bool) {
	const (
		outside = iota
		pending
		running
		finished
	)
	state := make(map[*nestOp]int)
	var all []*nestOp
	for _, c := range d.coordinators {
		for _, o := range c.ops {
			all = append(all, o)
			switch {
			case o.started.Load():
				state[o] = running
			case o.accepted.Load():
				state[o] = pending
			}
		}
	}
	count := func(c *nestCoordinator, s int, same func(*nestOp) bool) (n int) {
		for _, o := range c.ops {
			if state[o] == s && same(o) {
				n++
			}
		}
		return n
	}
	ends = make(map[*nestWait]bool)
	for moved := true; moved; {
		moved = false
		for _, o := range all {
			c, lane := o.c, func(x *nestOp) bool { return x.lane == o.lane }
			switch state[o] {
			case outside: // first come, first served
				first := !slices.ContainsFunc(c.ops[:slices.Index(c.ops, o)], func(x *nestOp) bool { return state[x] == outside && lane(x) })
				if first && count(c, pending, lane) < c.depth {
					state[o], moved = pending, true
				}
			case pending:
				limit := c.lanes[o.lane].Limit
				if count(c, running, func(*nestOp) bool { return true }) < c.limit &&
					(limit == 0 || count(c, running, lane) < limit) &&
					(!c.keyed || count(c, running, func(x *nestOp) bool { return x.key == o.key }) == 0) {
					state[o], moved = running, true
				}
			case running:
				over := true
				for _, w := range o.waits {
					if !ends[w] {
						ends[w] = (w.room == nil || state[w.room] != outside) &&
							!slices.ContainsFunc(w.ends, func(x *nestOp) bool { return state[x] != finished && !x.finished.Load() })
						moved = moved || ends[w]
					}
					over = over && ends[w]
				}
				if over {
					state[o], moved = finished, true
				}
			}
		}
	}
	return ends
}

// checkNoneStuck checks that whatever waits can end.
func (d *nestDriver) checkNoneStuck(after string) {
	d.t.Helper()
	ends := d.try()
	for _, c := range d.coordinators {
		for _, o := range c.ops {
			for _, w := range o.waits {
				if !ends[w] {
					d.errorf("%v waits in vain after %s", o, after)
				}
			}
		}
	}
}

// finish ends all operations as they come; none may be left.
func (d *nestDriver) finish() {
	d.t.Helper()
	for range 10_000 {
		d.settle()
		o := d.any(func(o *nestOp) bool { return o.started.Load() && len(o.waits) == 0 })
		if o == nil {
			break
		}
		close(o.commands)
	}
	for _, c := range d.coordinators {
		if s := c.Stats(); s.Pending+s.Running != 0 {
			d.errorf("%s: got %v, want all finished", c.Name(), s)
		}
		c.Close()
	}
}
