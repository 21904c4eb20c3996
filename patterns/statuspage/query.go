package statuspage

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A query is what a client asks for. Clients whose queries are equal share their frames.
type query struct {
	view                           string
	coordinator, sink, queue       string
	id, after                      uint64
	status                         core.Status
	key, lane, class, signal, name string // signal and name are patterns
	newest                         bool
	limit                          int
}

// parameters are those of each view.
var parameters = map[string][]string{
	"overview":   nil,
	"operations": {"coordinator", "status", "key", "lane", "class", "signal", "after", "limit", "order"},
	"operation":  {"coordinator", "id"},
	"signals":    {"sink", "pattern", "key", "after", "limit"},
	"dead":       {"queue", "after", "limit"},
}

// parse reads the parameters of a view.
func parse(view string, values url.Values) (query, error) {
	known, ok := parameters[view]
	if !ok {
		return query{}, failure{http.StatusNotFound, fmt.Sprintf("there is no view %q", view)}
	}
	for name := range values {
		if !slices.Contains(known, name) {
			return query{}, invalid("%s has no parameter %q", view, name)
		}
	}
	q := query{
		view:        view,
		coordinator: values.Get("coordinator"), sink: values.Get("sink"), queue: values.Get("queue"),
		key: values.Get("key"), lane: values.Get("lane"), class: values.Get("class"),
		signal: values.Get("signal"), name: values.Get("pattern"),
		newest: values.Get("order") == "newest", limit: 50,
	}
	if order := values.Get("order"); !slices.Contains([]string{"", "oldest", "newest"}, order) {
		return q, invalid("order is %q, but must be oldest or newest", order)
	}
	for name, to := range map[string]*uint64{"id": &q.id, "after": &q.after} {
		if text := values.Get(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 63)
			if err != nil {
				return q, invalid("%s is %q, but must be a number", name, text)
			}
			*to = n
		}
	}
	if text := values.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 200 {
			return q, invalid("limit is %q, but must be a number from 1 to 200", text)
		}
		q.limit = n
	}
	if text := values.Get("status"); text != "" {
		if err := q.status.UnmarshalText([]byte(strings.ReplaceAll(text, ",", "|"))); err != nil {
			return q, invalid("status is %q, but must be a list of pending, running, suspended, succeeded, failed, cancelled, refused and dropped", text)
		}
	}
	return q, nil
}

func invalid(format string, args ...any) error {
	return failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// A source makes the frames of a view, one at a time. It may remember things between them.
type source interface {
	frame(context.Context, effort) (any, error)
}

// effort says how much a frame may cost.
type effort struct {
	explain  time.Duration // to find out why operations wait
	children int           // operations to look at in search of children
	wait     time.Duration // for stores
}

var (
	whole  = effort{explain: 10 * time.Millisecond, children: 50_000, wait: time.Second} // of a single request
	shared = effort{explain: 60 * time.Microsecond, children: 200}                       // of a frame of a stream
)

// ioTimeout is how long a store may take.
const ioTimeout = 5 * time.Second

func (p *Page) newSource(q query) (source, error) {
	switch q.view {
	case "operations", "operation":
		c, err := pick(p.coordinators, "coordinator", q.coordinator)
		if err != nil {
			return nil, err
		}
		if q.view == "operation" {
			return &operationSource{page: p, coordinator: c, id: core.OperationID(q.id)}, nil
		}
		return &operationsSource{page: p, coordinator: c, query: q}, nil
	case "signals":
		s, err := pick(p.sinks, "sink", q.sink)
		return &signalsSource{page: p, sink: s, query: q, last: q.after}, err
	case "dead":
		s, err := pick(p.queues, "queue", q.queue)
		return &deadSource{page: p, queue: s, query: q}, err
	}
	return overviewSource{p}, nil
}
