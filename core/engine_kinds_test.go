package core_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestSignalsAreACopy(t *testing.T) {
	inBody(t, core.Options{}, func(ctx context.Context, op *core.Operation, c *core.Coordinator[coretest.Body]) {
		op.Raise("a")
		got := op.Signals()
		op.Raise("b")
		op.Retract("a")
		checkSlice(t, "signals, as they were", names(got), []string{"a"})
		got = op.Signals()
		got[0].Name = "changed"
		lookup(t, c, op.ID()).Signals[0].Name = "changed" // the reader's copy
		checkEqual(t, "signal", op.Signals()[0].Name, "b")
		checkEqual(t, "signal in a snapshot", lookup(t, c, op.ID()).Signals[0].Name, "b")
	})
}

// Operations that are pinned stay at their place in the order of the window.
func TestPinsDoNotDisturbTheOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: 3, MaxConcurrency: 1, MaxAge: time.Minute})
		var want []core.OperationID
		pin := func() {
			id := enqueue(t, c, quick)
			c.Pin(id)
			want = append(want, id)
		}
		pin()
		for range 10 {
			enqueue(t, c, quick)
			synctest.Wait()
		}
		pin()
		for range 10 {
			enqueue(t, c, quick)
			synctest.Wait()
		}
		pin()
		time.Sleep(time.Hour)
		for range 3 {
			want = append(want, enqueue(t, c, quick))
			synctest.Wait()
		}
		checkSlice(t, "window", found(c, core.OperationQuery{}), want)
		closeDown(t, c)
		unpin, ok := c.Pin(want[0])
		unpin() // does nothing
		checkEqual(t, "Pin of one that has left", ok, false)
	})
}

// No id is used twice, and the ids of one coordinator ascend.
func TestStressIDs(t *testing.T) {
	var seen sync.Map
	var all sync.WaitGroup
	n := stressed(20_000)
	opts := core.Options{MaxQueued: 1 << 20}
	shared := bodies(t, opts)
	for range 4 {
		all.Go(func() {
			var last [2]core.OperationID
			for i, own := 0, bodies(t, opts); i < n; i++ {
				id := enqueue(t, []*core.Coordinator[coretest.Body]{own, shared}[i%2], quick)
				_, twice := seen.LoadOrStore(id, true)
				coretest.Check(t, !twice && id > last[i%2], "got id %d, twice %t, after %d", id, twice, last[i%2])
				last[i%2] = id
			}
		})
	}
	all.Wait()
}
