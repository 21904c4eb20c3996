package statuspage_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// Two coordinators wait for each other. The graph has the cycle, and shows texts as the page
// shows them. An operation of a coordinator that the page does not show has no link.
func TestGraph(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]*core.Coordinator[string]{}
		begin := make(chan bool)
		body := func(ctx context.Context, on string) error {
			<-begin
			return calls[on].Do(ctx, "pay")
		}
		for _, name := range []string{"pay", "ship"} {
			c, err := core.NewKeyedCoordinator(func(string) string { return "secret" }, body, core.Options{Name: name})
			require.NoError(t, err)
			defer c.Close()
			calls[name] = c
		}
		pay, ship := enqueue(t, calls["pay"], "ship")[0], enqueue(t, calls["ship"], "pay")[0]
		hidden := newCoordinator(t, block, core.Options{Name: "hidden"})
		asks := newCoordinator(t, func(ctx context.Context, _ string) error { return hidden.Do(ctx, "x") }, core.Options{Name: "asks", MaxConcurrency: 1})
		enqueue(t, asks, "a", "b", "c")
		synctest.Wait()
		p := newPage(t, statuspage.Options{
			Coordinators: []core.Inspector{calls["pay"], calls["ship"], asks},
			Redact:       func(text string) string { return strings.ReplaceAll(text, "secret", "*") },
		})
		assert.Empty(t, get(t, p, "graph")["cycles"])
		close(begin)
		synctest.Wait()
		o := get(t, p, "graph")
		assert.EqualValues(t, 7, o["seen"])
		assert.EqualValues(t, 0, o["missing"])
		require.Len(t, o["cycles"], 1)
		var cycle []any
		for _, i := range o.at("cycles", 0).([]any) {
			n := object(o.at("nodes", int(i.(float64))).(map[string]any))
			cycle = append(cycle, n["coordinator"], n["kind"], n["operation"])
			assert.Equal(t, true, n["stuck"])
		}
		assert.Equal(t, []any{"pay", "operation", id(pay)}, cycle[:3])
		assert.Contains(t, cycle, id(ship))
		assert.Contains(t, o.each("edges", "text"), `the only slot of key "*" is taken by operation `+fmt.Sprint(pay))
		assert.Contains(t, o.each("edges", "order"), true)
		assert.NotContains(t, request(p, "GET", "/api/graph", "", nil).Body.String(), "secret")

		fails := newPage(t, statuspage.Options{Coordinators: []core.Inspector{broken{asks.Control}}})
		w := request(fails, "GET", "/api/graph", "", nil)
		assert.Equal(t, http.StatusInternalServerError, w.Code)
		assert.Contains(t, w.Body.String(), "panicked")
	})
}
