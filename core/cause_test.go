package core_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// An item enqueued because of a signal has its operation as parent, and it and what it
// enqueues raise signals caused by it.
func TestCausedBy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{Name: "work", Sink: sink, MaxConcurrency: 1})
		parents := map[string]core.OperationID{}
		body := func(name string, next func(context.Context)) func(context.Context) error {
			return func(ctx context.Context) error {
				op := core.OperationFrom(ctx)
				op.Raise(name)
				op.Hold(name+".held", 0)
				parents[name] = op.Parent()
				checkEqual(t, "source", op.Source(), "work")
				if cause, ok := core.CauseFrom(ctx); ok != (name != "first") || ok && cause.Name != "first" {
					t.Errorf("%s: got cause %v, %v", name, cause, ok)
				}
				if next != nil {
					next(ctx)
				}
				return nil
			}
		}
		add := func(ctx context.Context, b func(context.Context) error) {
			_, err := c.Enqueue(ctx, b)
			checkError(t, "Enqueue", err, nil)
		}
		grandchild := body("grandchild", nil)
		child := body("child", func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			add(ctx, grandchild)
		})
		defer sink.Subscribe("first", func(s core.Signal) {
			ctx, cancel := context.WithCancel(core.CausedBy(t.Context(), s))
			defer cancel()
			add(ctx, body("second", func(ctx context.Context) { add(ctx, child) }))
		})()
		add(t.Context(), body("first", nil))
		synctest.Wait()
		byName := map[string]core.OperationID{"first": 0}
		for s := range sink.Sense(core.Query{Pattern: "first, second, child, grandchild, *.held"}) {
			want := []string{"first", s.Name}
			if s.Name == "first" || s.Name == "first.held" {
				want = want[1:]
			}
			coretest.Check(t, slices.Equal(s.Path(), want), "%s has causes %v, want %v", s.Name, s.Path(), want)
			byName[s.Name] = s.Operation
		}
		for name, parent := range map[string]string{"second": "first", "child": "second", "grandchild": "child"} {
			checkEqual(t, "parent of "+name, parents[name], byName[parent])
		}
		var none *core.Operation
		checkEqual(t, "source of none", none.Source(), "")
	})
}
