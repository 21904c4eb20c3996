package core_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A body that enqueues the next one, and so on, keeps none of its ancestors alive. The values of the first context
// are still passed on.
func TestDescendantsKeepNoAncestors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type name struct{}
		c := bodies(t, core.Options{MaxTracked: 1})
		var (
			first weak.Pointer[core.Operation]
			n     int
			last  core.OperationID // and the one before:
			prev  core.OperationID
			body  func(ctx context.Context) error
		)
		body = func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			checkEqual(t, "parent", op.Parent(), last)
			checkEqual(t, "value", ctx.Value(name{}), any("handed down"))
			if prev, last = last, op.ID(); n == 0 {
				first = weak.Make(op)
			}
			if n++; n < 1000 {
				_, err := c.Enqueue(ctx, body)
				return err
			}
			runtime.GC()
			coretest.Check(t, first.Value() == nil, "the first operation is still there when the thousandth runs")
			return nil
		}
		_, err := c.Enqueue(context.WithValue(t.Context(), name{}, "handed down"), body)
		checkError(t, "Enqueue", err, nil)
		synctest.Wait()
		checkEqual(t, "operations", n, 1000)
		checkEqual(t, "parent in the snapshot", lookup(t, c, last).Parent, prev)
	})
}

// The echo of an operation keeps neither what it stored nor its item nor its context, also if its body has waited.
func TestEchoKeepsLastWordsOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type request struct{}
		var waited weak.Pointer[core.Operation]
		c := coordinator(t, func(ctx context.Context, item *block) error {
			op := core.OperationFrom(ctx)
			op.Suspend(ctx, "nothing", func(context.Context) error { return nil })
			waited = weak.Make(op)
			op.Set("item", item)
			op.SetKey("key")
			op.Raise("last.word")
			return errOnPurpose
		}, core.Options{})
		stored, carried := new(block), new(block)
		item, value := weak.Make(stored), weak.Make(carried)
		c.Enqueue(context.WithValue(t.Context(), request{}, carried), stored)
		stored, carried = nil, nil
		synctest.Wait()
		checkFreed(t, "stored in the window", item, false)
		for s := range c.Operations(core.OperationQuery{}) {
			c.Evict(s.ID)
		}
		checkFreed(t, "stored", item, true)
		checkFreed(t, "carried by the context", value, true)
		coretest.Check(t, waited.Value() == nil, "the operation is kept")
		for e := range c.Echoes(signals.Query{}) {
			checkEqual(t, "last words", words(e.Key, e.Status, e.Err, len(e.Signals), e.Operation != 0), words("key failed", errOnPurpose, "1 true"))
		}
		runtime.KeepAlive(c)
		_, _ = stored, carried
	})
}

// heap is how many bytes of memory are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The memory of many pending items is given back when they are done, not when the coordinator is closed.
func TestAFloodLeavesNoMemoryBehind(t *testing.T) {
	const items, allowed = 50_000, 256 << 10
	for _, test := range []struct {
		name string
		make func(core.Work[int], core.Options) (*core.Coordinator[int], error)
		opts core.Options
	}{
		{"plain", core.NewCoordinator[int], core.Options{}},
		{"lanes", core.NewCoordinator[int], core.Options{Lanes: []core.Lane{{Name: "hot"}, {Name: "normal"}}}},
		{"keys", func(work core.Work[int], opts core.Options) (*core.Coordinator[int], error) {
			return core.NewKeyedCoordinator(strconv.Itoa, work, opts)
		}, core.Options{}},
	} {
		test.opts.MaxQueued = items
		before := heap()
		c := core.Must(test.make(func(context.Context, int) error { return nil }, test.opts))
		c.Pause()
		for i := range items {
			accepted(t)(c.TryEnqueue(context.Background(), i))
		}
		if took := heap() - before; took < 10*allowed {
			t.Errorf("%s: pending items take %d bytes: this shows nothing", test.name, took)
		}
		c.Resume()
		checkError(t, "Flush", c.Flush(context.Background()), nil)
		if left := heap() - before; left > allowed {
			t.Errorf("%s: %d bytes left after all is done, want at most %d", test.name, left, allowed)
		}
		runtime.KeepAlive(c)
	}
}

// Names that have gone leave at most 64 KiB behind a sink, and as much behind each coordinator, whatever was asked, held
// or kept for a gate, also if they are long or many.
func TestLongNamesLeaveNothingBehind(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector keeps memory of its own")
	}
	c := core.Must(core.NewCoordinator(func(ctx context.Context, name string) error {
		core.OperationFrom(ctx).Raise(name)
		return nil
	}, core.Options{Sink: signals.NewSink(signals.SinkOptions{Capacity: 4000}), MaxTracked: 10, EchoCapacity: -1}))
	s := c.Sink()
	s.Subscribe("*0", func(signals.Signal) {})
	kept := coordinator(t, func(context.Context, int) error { return nil }, core.Options{Sink: s, DeferOn: "*9"})
	for range 4000 { // what a full window needs is there
		s.Raise("first")
	}
	for range 100 {
		checkError(t, "Do", c.Do(t.Context(), "first"), nil)
	}
	s.Forget(signals.Query{Pattern: "*"})
	before := heap()
	for _, size := range []int{10, 90, 100_000} {
		for _, asked := range []bool{false, true} {
			if !asked && long.Often(1, 0) == 0 {
				continue
			}
			for i := range min(long.Often(8000, 4000), 10_000_000/size) {
				name := fmt.Sprint(strings.Repeat("long", size/4), i)
				s.Raise(name)
				if c.Do(t.Context(), name) != nil {
					t.Fatal("Do failed")
				}
				s.Hold(name+"held", "", time.Nanosecond)
				for n := 0; asked && n < 3; n++ {
					if !s.Has(name) || s.Count(name) != 2 || !c.Has(name) || len(sensed(s, signals.Query{Pattern: name})) != 2 {
						t.Fatal("a name is absent")
					}
				}
			}
			for o := range c.Operations(core.OperationQuery{}) {
				c.Evict(o.ID)
			}
			s.Forget(signals.Query{Pattern: "*"})
			if left := heap() - before; left > 3*64<<10 { // a sink and two coordinators
				t.Errorf("names of %d bytes, asked for %v: %d bytes left behind", size, asked, left)
			}
		}
	}
	runtime.KeepAlive(kept)
}
