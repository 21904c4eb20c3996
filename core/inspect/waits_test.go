package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// call is the body of an item: it may call another coordinator.
type call func(ctx context.Context) error

func newCalls(t *testing.T, opts core.Options) *core.Coordinator[call] {
	c, err := core.NewCoordinator(func(ctx context.Context, f call) error { return f(ctx) }, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func enqueue(t *testing.T, c *core.Coordinator[call], f call) core.OperationID {
	t.Helper()
	id, err := c.Enqueue(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return id
}

func block(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// cyclesIn returns the cycles as text.
func cyclesIn(g inspect.WaitGraph) (all []string) {
	for _, cycle := range g.Cycles {
		var path []string
		for _, i := range cycle {
			n := g.Nodes[i]
			path = append(path, strings.TrimSpace(fmt.Sprintf("%s %s%s", n.Coordinator, n.Kind, n.Name)))
			if n.Operation != 0 {
				path[len(path)-1] += fmt.Sprint("#", n.Operation)
			}
		}
		all = append(all, strings.Join(path, " > "))
	}
	return all
}

// Two coordinators wait for each other: each has its only slot taken by an operation that
// calls the other one. With a second slot whose operation can end, there is a way out.
func TestWaitsShowsACycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pay, ship := newCalls(t, core.Options{Name: "pay", MaxConcurrency: 1}), newCalls(t, core.Options{Name: "ship", MaxConcurrency: 2})
		other := enqueue(t, ship, block)
		begin := make(chan bool)
		var inner, outer core.OperationID
		nest := func(on *core.Coordinator[call], id *core.OperationID) call {
			return func(ctx context.Context) (err error) {
				<-begin
				if *id, err = on.Enqueue(ctx, block); err != nil {
					return err
				}
				return on.Wait(ctx, *id)
			}
		}
		a := enqueue(t, pay, nest(ship, &inner))
		b := enqueue(t, ship, nest(pay, &outer))
		close(begin)
		synctest.Wait()
		g := inspect.Waits(pay, ship)
		if len(g.Cycles) != 0 || g.Seen != 5 || g.Missing != 0 || slices.ContainsFunc(g.Nodes, func(n inspect.WaitNode) bool { return n.Stuck }) {
			t.Fatalf("%v, although operation %d can end: %+v", cyclesIn(g), other, g.Nodes)
		}
		if err := ship.SetMaxConcurrency(1); err != nil {
			t.Fatal(err)
		}
		ship.Cancel(other, nil)
		synctest.Wait()

		g = inspect.Waits(pay, ship)
		want := fmt.Sprintf("pay#%d > ship#%d > ship limit > ship#%d > pay#%d > pay limit", a, inner, b, outer)
		if got := cyclesIn(g); len(got) != 1 || got[0] != want {
			t.Fatalf("cycles are %q, want %q", got, want)
		}
		from := g.Nodes[g.Cycles[0][1]]
		i := slices.IndexFunc(g.Edges, func(e inspect.WaitEdge) bool { return g.Nodes[e.From] == from })
		if e := g.Edges[i]; e.Reason.Kind != core.ReasonLimit || e.Reason.Holder != b || from.Status != core.StatusPending {
			t.Fatalf("operation %d %s waits because of %v", from.Operation, from.Status, e.Reason)
		}
		if got := inspect.Waits(pay); len(got.Cycles) != 0 || !slices.ContainsFunc(got.Nodes, func(n inspect.WaitNode) bool { return n.Of == -1 && n.Operation == inner }) {
			t.Fatalf("one coordinator alone: %v %+v", cyclesIn(got), got.Nodes)
		}
	})
}

// An operation waits for room in a coordinator whose only slot waits for it. Another one holds
// the signal that defers the operation for which it waits.
func TestWaitsForResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		first := newCalls(t, core.Options{Name: "first", MaxConcurrency: 1})
		full := newCalls(t, core.Options{Name: "full", MaxConcurrency: 1, MaxQueued: -1})
		begin := make(chan bool)
		a := enqueue(t, first, func(ctx context.Context) error {
			<-begin
			_, err := full.Enqueue(ctx, block)
			return err
		})
		var inner core.OperationID
		b := enqueue(t, full, func(ctx context.Context) (err error) {
			<-begin
			if inner, err = first.Enqueue(ctx, block); err != nil {
				return err
			}
			return first.Wait(ctx, inner)
		})
		gated := newCalls(t, core.Options{Name: "gated", Sink: sink, DeferOn: "db.down", Lanes: []core.Lane{{Name: "slow", Limit: 1}}})
		c := enqueue(t, gated.Lane("slow"), func(ctx context.Context) error {
			core.OperationFrom(ctx).Hold("db.down", 0)
			return gated.Do(ctx, block)
		})
		close(begin)
		synctest.Wait()
		g := inspect.Waits(first, full, gated)
		got := cyclesIn(g)
		for _, want := range []string{
			fmt.Sprintf("full#%d > first#%d > first limit > first#%d > full nested > full limit", b, inner, a),
			fmt.Sprintf("gated#%d > gated", c),
		} {
			if !slices.ContainsFunc(got, func(cycle string) bool { return strings.HasPrefix(cycle, want) }) {
				t.Errorf("cycles are %q, want %q", got, want)
			}
		}
		if !slices.ContainsFunc(got, func(cycle string) bool { return strings.Contains(cycle, "gated deferreddb.down") }) {
			t.Errorf("cycles are %q, none with the signal", got)
		}
	})
}

// The order of a key is a wait: an operation of a key is behind one whose class is full, and the operation that fills the
// class waits for it. If it has no key, it starts before that one.
func TestWaitsForTheOrderOfAKey(t *testing.T) {
	for _, key := range []string{"ada", ""} {
		synctest.Test(t, func(t *testing.T) {
			type keyed struct {
				key string
				call
			}
			c := core.Must(core.NewKeyedCoordinator(func(k keyed) string { return k.key }, func(ctx context.Context, k keyed) error { return k.call(ctx) },
				core.Options{Name: "shop", Classes: []core.Class{{Name: "mail", Limit: 1}}}))
			defer c.Close()
			other := newCalls(t, core.Options{Name: "other"})
			begin := make(chan bool)
			var last core.OperationID
			outer := core.Must(c.Class("mail").Enqueue(t.Context(), keyed{"bob", func(ctx context.Context) error {
				<-begin
				return other.Do(ctx, func(ctx context.Context) (err error) {
					if last, err = c.Enqueue(ctx, keyed{key, block}); err != nil {
						return err
					}
					return c.Wait(ctx, last)
				})
			}}))
			first := core.Must(c.Class("mail").Enqueue(t.Context(), keyed{"ada", block}))
			close(begin)
			synctest.Wait()
			got := cyclesIn(inspect.Waits(c, other))
			if key == "" {
				if s, _ := c.Lookup(last); s.Status != core.StatusRunning || len(got) != 0 {
					t.Errorf("without a key it is %v, with cycles %q", s.Status, got)
				}
				return
			}
			if want := fmt.Sprintf("shop#%d > shop#%d > shop classmail > shop#%d > other#", last, first, outer); len(got) != 1 || !strings.Contains(got[0]+" > "+got[0], want) {
				t.Errorf("cycles are %q, want %q", got, want)
			}
		})
	}
}

// That others go first is an edge to the first of them, but no cycle goes over it: the last one starts as soon as a slot
// is free, although one of a higher lane waits for the operation that waits for the last one.
func TestWaitsShowsWhoGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls(t, core.Options{Name: "shop", MaxConcurrency: 2, Lanes: []core.Lane{{Name: "high", Limit: 1}, {Name: "low"}}})
		other := newCalls(t, core.Options{Name: "other"})
		begin := make(chan bool)
		var last core.OperationID
		outer := enqueue(t, c.Lane("high"), func(ctx context.Context) error {
			<-begin
			return other.Do(ctx, func(ctx context.Context) (err error) {
				if last, err = c.Lane("low").Enqueue(ctx, block); err != nil {
					return err
				}
				return c.Wait(ctx, last)
			})
		})
		busy := enqueue(t, c.Lane("low"), block)
		high := enqueue(t, c.Lane("high"), block)
		low := enqueue(t, c.Lane("low"), block)
		third := enqueue(t, c.Lane("low"), block)
		close(begin)
		synctest.Wait()
		g := inspect.Waits(c, other)
		var order []string
		for _, e := range g.Edges {
			if e.Order && g.Nodes[e.From].Operation == last {
				order = append(order, fmt.Sprintf("%s %d %d", e.Reason.Kind, g.Nodes[e.To].Operation, e.Reason.Ahead))
			}
		}
		if want := []string{fmt.Sprintf("priority %d 1", high), fmt.Sprintf("order %d 2", low)}; !slices.Equal(order, want) {
			t.Errorf("%q go first, want %q", order, want)
		}
		if got := cyclesIn(g); len(got) != 0 {
			t.Errorf("operation %d waits in a cycle that ends: %q", outer, got)
		}
		for _, id := range []core.OperationID{busy, low, third} {
			c.Cancel(id, nil)
			synctest.Wait()
		}
		if s, _ := c.Lookup(last); s.Status != core.StatusRunning {
			t.Errorf("the last one is %v, behind one of a higher lane that waits for it", s.Status)
		}
	})
}

// Waits looks at so many operations, and a coordinator with few is not pushed out by others.
func TestWaitsIsBoundedAndFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []core.Inspector
		for _, n := range []int{900, 3, 700} {
			c := newCalls(t, core.Options{Name: fmt.Sprint("c", n), MaxConcurrency: 1})
			for range n {
				if _, err := c.Enqueue(context.Background(), block); err != nil {
					t.Fatal(err)
				}
			}
			all = append(all, c)
		}
		synctest.Wait()
		g := inspect.Waits(all...)
		seen := map[string]int{}
		for _, n := range g.Nodes {
			if n.Kind == "" {
				seen[n.Coordinator]++
			}
		}
		if seen["c3"] != 3 || seen["c700"] != 248 || seen["c900"] != 249 || g.Seen != 500 || g.Missing != 1603-500 {
			t.Fatalf("looked at %v, %d in all, and %d are missing", seen, g.Seen, g.Missing)
		}
		if n := g.Nodes[slices.IndexFunc(g.Nodes, func(n inspect.WaitNode) bool { return n.Coordinator == "c900" })]; n.Status != core.StatusRunning {
			t.Fatalf("the first of c900 is %v, want the running operation", n.Status)
		}
	})
}
