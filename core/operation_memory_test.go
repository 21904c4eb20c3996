package core_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/ephemeralgo/ephemeral/core"
)

// A body that enqueues the next one, which enqueues the next one, and so on, as
// what polls or crawls does, keeps none of its ancestors alive. The values of the
// first context are handed down all the same.
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
			if first.Value() != nil {
				t.Error("the first operation is still there when the thousandth runs")
			}
			return nil
		}
		_, err := c.Enqueue(context.WithValue(t.Context(), name{}, "handed down"), body)
		checkError(t, "Enqueue", err, nil)
		synctest.Wait()
		checkEqual(t, "operations", n, 1000)
		checkEqual(t, "parent in the snapshot", lookup(t, c, last).Parent, prev)
	})
}

// What is remembered of an operation that has left the window does not keep what
// it stored, its item or its context.
func TestEchoKeepsLastWordsOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type request struct{}
		c := coordinator(t, func(ctx context.Context, item *block) error {
			op := core.OperationFrom(ctx)
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
		for e := range c.Echoes(core.Query{}) {
			if e.Key != "key" || e.Status != core.StatusFailed || e.Err != errOnPurpose || len(e.Signals) != 1 || e.Operation == 0 {
				t.Errorf("got %+v, want the last words", e)
			}
		}
		runtime.KeepAlive(c)
		_, _ = stored, carried
	})
}

// Once an operation has left the window its methods do nothing: what still has its
// context cannot change what is remembered of it.
func TestSetKeyAfterTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: -1})
		var op *core.Operation
		c.Do(t.Context(), func(ctx context.Context) error {
			op = core.OperationFrom(ctx)
			op.SetKey("before")
			return nil
		})
		synctest.Wait()
		op.SetKey("after")
		checkEqual(t, "Key", op.Key(), "before")
		for e := range c.Echoes(core.Query{}) {
			checkEqual(t, "key of the echo", e.Key, "before")
		}
	})
}
