package statuspage_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// A signal leads to the operations that raised its causes, while the page shows these: to no other that raised a signal of
// the same name.
func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		c := newCoordinator(t, func(ctx context.Context, name string) error {
			core.OperationFrom(ctx).Raise(name)
			return nil
		}, core.Options{Name: "c", Sink: sink})
		raise := func(name string, because signals.Signal) (n core.OperationID, raised signals.Signal) {
			n, err := c.Enqueue(signals.CausedBy(context.Background(), because), name)
			require.NoError(t, err)
			synctest.Wait()
			for raised = range sink.Sense(signals.Query{Operation: n}) {
			}
			return n, raised
		}
		sink.Raise("order.begun")
		var begun signals.Signal
		for begun = range sink.Sense(signals.Query{}) {
		}
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}, Sinks: map[string]*signals.Sink{"s": sink}})
		a, placed := raise("order.placed", begun)
		b, priced := raise("order.priced", placed)
		raise("order.priced", begun)
		raise("order.placed", begun)
		d, _ := raise("order.paid", priced)
		c.Evict(b)

		want := []any{
			map[string]any{"name": "order.begun"}, map[string]any{"name": "order.placed", "operation": id(a), "coordinator": "c"},
			map[string]any{"name": "order.priced", "operation": id(b)},
		}
		for _, target := range []string{"signals?pattern=order.paid", fmt.Sprint("operation?id=", d)} {
			assert.Equal(t, want, get(t, p, target).at("signals", 0, "causes"), target)
		}
	})
}
