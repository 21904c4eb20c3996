package statuspage_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// plain is a queue, or schedules, without more than they must have.
type plainQueue struct{ inspect.StoredQueue }

type plainPlans struct{ inspect.Schedules }

// An item has its history, and a schedule its last 20 firings, if the queue and the schedules know these.
func TestDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, block, core.Options{Name: "c"})
		n := enqueue(t, c, "a")[0]
		q := &store{name: "q", dead: []inspect.StoredItem{{ID: 5, Lane: "hot", State: "dead", Err: "boom"}, {ID: 6}}}
		s := &plans{names: []string{"daily", "report"}, fired: n}
		p := newPage(t, statuspage.Options{
			Coordinators: []core.Inspector{c}, Queues: []inspect.StoredQueue{q, plainQueue{&store{name: "r"}}}, Schedules: []inspect.Schedules{s, plainPlans{s}},
		})
		o := get(t, p, "item?queue=q&id=5")
		assert.Equal(t, []any{5.0, "dead", "boom", "why: boom"}, []any{o.at("item", "id"), o.at("item", "state"), o.at("item", "error"), o.at("item", "why")})
		assert.Equal(t, map[string]any{"state": "retry", "node": "hot", "started": "2000-01-01T00:00:00Z", "error": "boom"}, o.at("item", "history", 0))
		assert.EqualValues(t, 2, get(t, p, "count?queue=q&state=any&lane=l&class=c&key=k&error=e")["count"])
		assert.Equal(t, inspect.ItemQuery{Lane: "l", Class: "c", Key: "k", Err: "e", Limit: 50}, q.last)
		assert.Equal(t, []any{true, false}, get(t, p, "overview").each("queues", "details"))

		o = get(t, p, "schedule?schedules=nightly&schedule=report")
		assert.Equal(t, []any{"nightly", "report", "about report"}, []any{o["group"], o["name"], o["description"]})
		assert.Len(t, o["firings"], 20)
		assert.Equal(t, map[string]any{"tick": "0001-01-01T00:00:00Z", "state": "failed", "operation": id(n), "coordinator": "c", "error": "report"}, o.at("firings", 0))
		assert.Empty(t, get(t, p, "schedule?schedules=nightly-2&schedule=report")["firings"])
		for target, code := range map[string]int{"item?queue=q&id=7": 404, "item?queue=q&id=x": 400, "item?queue=r&id=5": 400, "count?queue=r": 400, "schedule?schedules=nightly&schedule=none": 404} {
			assert.Equal(t, code, request(p, "GET", "/api/"+target, "", nil).Code, target)
		}
	})
}

// An item that has a flow has its last 100 steps, in order, and says how many there are before these. Lists have none.
func TestStepsOfAFlow(t *testing.T) {
	q := &store{name: "q", dead: []inspect.StoredItem{{ID: 5, State: "ready", Err: "<b>\xff"}}}
	p := newPage(t, statuspage.Options{Queues: []inspect.StoredQueue{q}})
	assert.Equal(t, map[string]any{"name": "<b>\uFFFD", "state": "ready", "signal": "<b>\uFFFD"}, get(t, p, "item?id=5").at("item", "steps", 0))
	assert.NotContains(t, request(p, "GET", "/api/item?id=5", "", nil).Body.String(), "<")
	begun := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	q.steps = make([]inspect.ItemStep, 999)
	q.steps[900] = inspect.ItemStep{Name: "approval", State: "waits", Attempts: 2, Started: begun, Until: begun.Add(time.Hour), Signal: "approval.*"}
	o := get(t, p, "item?id=5")
	assert.EqualValues(t, 900, o["missing"])
	assert.Len(t, o.at("item", "steps"), 100)
	assert.Equal(t, map[string]any{"name": "approval", "state": "waits", "attempts": 2.0, "started": "2000-01-01T00:00:00Z", "until": "2000-01-01T01:00:00Z", "signal": "approval.*"}, o.at("item", "steps", 0))
	assert.Equal(t, "<b>\uFFFD", o.at("item", "steps", 99, "name"))
	assert.Nil(t, get(t, p, "items?state=any").at("items", 0, "steps"))
}

// A change of many items is for those that match, 500 at most, and says how many it changed.
func TestActionsOnManyItems(t *testing.T) {
	q := &store{name: "q", dead: make([]inspect.StoredItem, 4)}
	p := newPage(t, statuspage.Options{Queues: []inspect.StoredQueue{q, plainQueue{&store{name: "r"}}}, View: statuspage.Loopback, Allow: anything, Name: "ops"})
	assert.Subset(t, get(t, p, "overview").at("queues", 0, "can"), []any{"againAll", "discardAll", "cancelAll"})
	assert.NotContains(t, get(t, p, "overview").at("queues", 1, "can"), "againAll")

	code, o := act(t, p, `{"action":"againAll","queue":"q","state":"any","lane":"l","class":"c","key":"k","error":"e"}`)
	assert.Equal(t, []any{200, true, 4.0}, []any{code, o["done"], o["changed"]})
	assert.Equal(t, inspect.ItemQuery{Lane: "l", Class: "c", Key: "k", Err: "e", Limit: 500}, q.last)
	code, o = act(t, p, `{"action":"cancelAll","queue":"q","state":"ready"}`)
	assert.Equal(t, []any{200, false, 0.0}, []any{code, o["done"], o["changed"]})
	code, _ = act(t, p, `{"action":"discardAll","queue":"q"}`)
	assert.Equal(t, 500, code)
	assert.Equal(t, inspect.ItemQuery{State: "halted|dead", Limit: 500}, q.last, "without a state, those that are not tried any more")
	code, _ = act(t, p, `{"action":"againAll","queue":"r"}`)
	assert.Equal(t, 400, code)
	// No more are changed than a person has confirmed, although more may match by then.
	for limit, want := range map[int]int{3: 3, 700: 500} {
		act(t, p, `{"action":"cancelAll","queue":"q","limit":%d}`, limit)
		assert.Equal(t, want, q.last.Limit)
	}
	code, o = act(t, p, `{"action":"cancelAll","queue":"q","limit":0}`)
	assert.Equal(t, 400, code)
	assert.Contains(t, o["error"], "the limit is 0")
	const cancel = "cancelAll statuspage: ops: cancelled by 127.0.0.1:4711"
	assert.Equal(t, []string{"againAll", cancel, "discardAll", cancel, cancel}, q.calls)
	var acted []string
	for _, a := range statuspage.Acted.Sense(p.Sink(), signals.Query{}) {
		acted = append(acted, fmt.Sprint(a.Kind, " ", a.State, " ", a.Changed, " ", a.Done, " ", a.Err != nil))
	}
	assert.Equal(t, []string{"againAll any 4 true false", "cancelAll ready 0 false false", "discardAll  3 true true", "againAll  0 false true"}, acted[:4])
}
