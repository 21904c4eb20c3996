package statuspage

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// A query is a view with its parameters. Clients whose queries are equal share their frames.
type query struct {
	view string
	of   string // id of the coordinator, sink or queue to show
	id   core.OperationID
	text string // to find, or the name of a schedule
	core.OperationQuery
	items   inspect.ItemQuery
	minutes int // of the view time
}

// A kind of view has parameters, and opens a source for its frames.
type viewKind struct {
	parameters string
	every      time.Duration // the least time between two frames of a stream
	open       func(*Page, query) (source, error)
}

var viewKinds = map[string]viewKind{
	"overview":   {"", frameEvery, func(p *Page, _ query) (source, error) { return p.overview, nil }},
	"graph":      {"", time.Second, func(p *Page, _ query) (source, error) { return p.graph, nil }},
	"time":       {"minutes", time.Second, func(p *Page, q query) (source, error) { return p.times(q.minutes), nil }},
	"operations": {"coordinator status key lane class signal after limit order find", frameEvery, (*Page).operations},
	"operation":  {"coordinator id", frameEvery, (*Page).operation},
	"errors":     {"coordinator limit", frameEvery, (*Page).failures},
	"signals":    {"sink pattern key after limit", frameEvery, (*Page).signals},
	"items":      {"queue state lane class key error after limit", storeEvery, (*Page).itemsOf},
	"count":      {"queue state lane class key error", storeEvery, (*Page).countOf},
	"item":       {"queue id", storeEvery, (*Page).itemOf},
	"schedule":   {"schedules schedule", storeEvery, (*Page).schedule},
}

// parse reads the parameters of a view.
func parse(view string, values url.Values) (q query, err error) {
	kind, ok := viewKinds[view]
	if !ok {
		return q, absent("there is no view %q", view)
	}
	for name, all := range values {
		if !slices.Contains(strings.Fields(kind.parameters), name) || len(all) > 1 {
			return q, invalid("%s has no parameter %q, or has it twice", view, name)
		}
	}
	number := func(name, otherwise string, most uint64) uint64 {
		n, bad := strconv.ParseUint(cmp.Or(values.Get(name), otherwise), 10, 64)
		if (bad != nil || n > most) && (view != "items" || name != "after") {
			err = invalid("%s is %q, but must be a number up to %d", name, values.Get(name), most)
		}
		return n
	}
	order := cmp.Or(values.Get("order"), "oldest")
	q = query{
		view: view, of: values.Get("coordinator") + values.Get("sink") + values.Get("queue") + values.Get("schedules"),
		id: core.OperationID(number("id", "0", math.MaxInt64)), text: values.Get("find") + values.Get("schedule"),
		OperationQuery: core.OperationQuery{
			Key: values.Get("key"), Lane: values.Get("lane"), Class: values.Get("class"),
			Pattern: values.Get("signal") + values.Get("pattern"), NewestFirst: order == "newest",
			After: core.OperationID(number("after", "0", math.MaxInt64)), Limit: max(1, int(number("limit", "50", 200))),
		},
	}
	q.items = Action{State: values.Get("state"), Lane: q.Lane, Class: q.Class, Key: q.Key, Error: values.Get("error"), Limit: q.Limit}.match()
	q.items.After = values.Get("after")
	q.minutes = int(number("minutes", "5", 60))
	switch text := values.Get("status"); {
	case !slices.Contains([]int{1, 5, 60}, q.minutes):
		err = invalid("minutes is %q, but must be 1, 5 or 60", values.Get("minutes"))
	case q.text != "" && q.After != 0:
		err = invalid("a search with find has one page: it takes no parameter after")
	case order != "oldest" && order != "newest":
		err = invalid("order is %q, but must be oldest or newest", order)
	case text != "" && q.Status.UnmarshalText([]byte(strings.ReplaceAll(text, ",", "|"))) != nil:
		err = invalid("status is %q, but must be a list of pending, running, suspended, succeeded, failed, cancelled, refused and dropped", text)
	}
	return q, err
}

func invalid(format string, args ...any) error {
	return failure{code: http.StatusBadRequest, text: fmt.Sprintf(format, args...)}
}

func absent(format string, args ...any) error {
	return failure{code: http.StatusNotFound, text: fmt.Sprintf(format, args...)}
}

// A source makes the frames of a view, one at a time. It may keep state between frames.
type source func(context.Context, effort) (any, error)

// effort says how much a frame may cost.
type effort struct {
	explain  time.Duration // time to find out why operations wait
	children int           // how many operations to check for children
	wait     time.Duration // for stores
}

var whole = effort{explain: 200 * time.Millisecond, children: 50_000, wait: time.Second} // effort of a single request
var first = effort{explain: 20 * time.Millisecond, children: 50_000}                     // effort of the first frame of a view
var later = effort{explain: 50 * time.Microsecond, children: 200}

// ioTimeout is how long a store may take.
const ioTimeout = 5 * time.Second

// in returns the coordinators to look at: one, or all if a query that permits it names none.
func (p *Page) in(q query, permitsAll bool) ([]*coordinator, error) {
	if q.of == "" && permitsAll {
		return p.coordinators, nil
	}
	c, err := choose(p.coordinators, "coordinator", q.of)
	return []*coordinator{c}, err
}

// choose is pick. Without an id, it returns the only entry, or an error if there are
// several.
func choose[T any](list []*entry[T], what, id string) (*entry[T], error) {
	if id == "" && len(list) > 1 {
		return new(entry[T]), invalid("there are several %ss: the parameter %s must name one", what, what)
	}
	if id == "" && len(list) == 1 {
		return list[0], nil
	}
	return pick(list, what, id)
}
