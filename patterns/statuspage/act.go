package statuspage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const (
	// SignalActed is raised with an [Action] that was allowed, after it was done or failed.
	SignalActed = "statuspage.acted"
	// SignalRefused is raised with an [Action] that Allow refused, at most once a second. Names
	// that are not on the page are empty in it. Other refusals raise no signal: [Page.Stats]
	// counts them.
	SignalRefused = "statuspage.refused"
)

// Acted and Refused are the kinds of [SignalActed] and [SignalRefused]. The key of such a
// signal is the name of the coordinator, queue, schedule or sink.
var (
	Acted   = signals.NewKind[Action](SignalActed)
	Refused = signals.NewKind[Action](SignalRefused)
)

// An Action is a change that a request asks for. Each Kind has its own fields:
//
//	cancel, evict                 Coordinator, Operation
//	pause, resume                 Coordinator
//	limit                         Coordinator, Limit
//	again, discard                Queue, Item
//	againAll, discardAll          Queue; State, Lane, Class, Key and Error say which items, and Limit how many
//	cancelAll                     like discardAll
//	pauseQueue, resumeQueue       Queue
//	pauseSchedule, resumeSchedule Schedules, Schedule
//	runNow                        Schedules, Schedule
//	retract                       Sink, Signal
//
// Names are the names on the page. A request with a field that does not belong to its kind
// gets status 400.
type Action struct {
	Kind        string           `json:"action"`
	Coordinator string           `json:"coordinator,omitempty"`
	Operation   core.OperationID `json:"operation,omitempty"`
	Limit       int              `json:"limit,omitempty"`
	Queue       string           `json:"queue,omitempty"`
	Item        int64            `json:"item,omitempty"`
	Schedules   string           `json:"schedules,omitempty"` // name of the group
	Schedule    string           `json:"schedule,omitempty"`
	Sink        string           `json:"sink,omitempty"`
	//ephemeral:none
	Signal string `json:"signal,omitempty"` // pattern of names, see [signals.Match]

	// Which items of a queue, as in [inspect.ItemQuery]. State "" is those that are not tried any more, and "any" is all.
	State string `json:"state,omitempty"`
	Lane  string `json:"lane,omitempty"`
	Class string `json:"class,omitempty"`
	Key   string `json:"key,omitempty"`
	Error string `json:"error,omitempty"`

	page    string // for causes: only a deed has it
	Who     string `json:"-"` // the person that asks for it: see [Options.Who]
	Done    bool   `json:"-"` // in SignalActed: the action changed something
	Changed int    `json:"-"` // in SignalActed: how many items, signals or other things it changed
	Err     error  `json:"-"` // in SignalActed and SignalRefused: why it was not done
}

// A deed does an action and returns how many things it changed.
type deed func(context.Context) (int, error)

// A kind of action has its own fields. It finds the object of an action.
type kind struct {
	fields string
	find   func(*Page, Action) (deed, error)
}

// itemFields are the fields that say which items of a queue.
const itemFields = "queue state lane class key error limit"

var kinds = map[string]kind{
	"cancel": on("coordinator operation", (*Page).steered, func(_ context.Context, c inspect.Actions, a Action) (int, error) {
		return once(c.Cancel(a.Operation, fmt.Errorf("statuspage: %s: operation %d cancelled by %s", a.page, a.Operation, a.Who)), nil)
	}),
	"evict": on("coordinator operation", (*Page).steered, func(_ context.Context, c inspect.Actions, a Action) (int, error) {
		return once(c.Evict(a.Operation), nil)
	}),
	"pause":  on("coordinator", (*Page).steered, func(_ context.Context, c inspect.Actions, _ Action) (int, error) { c.Pause(); return 1, nil }),
	"resume": on("coordinator", (*Page).steered, func(_ context.Context, c inspect.Actions, _ Action) (int, error) { c.Resume(); return 1, nil }),
	"limit": on("coordinator limit", (*Page).steered, func(_ context.Context, c inspect.Actions, a Action) (int, error) {
		return one(c.SetMaxConcurrency(a.Limit))
	}),
	"again":       on("queue item", (*Page).queue, func(ctx context.Context, q *cache, a Action) (int, error) { return once(q.Again(ctx, a.Item)) }),
	"discard":     on("queue item", (*Page).queue, func(ctx context.Context, q *cache, a Action) (int, error) { return once(q.Discard(ctx, a.Item)) }),
	"pauseQueue":  on("queue", (*Page).queue, func(ctx context.Context, q *cache, _ Action) (int, error) { return one(q.Pause(ctx)) }),
	"resumeQueue": on("queue", (*Page).queue, func(ctx context.Context, q *cache, _ Action) (int, error) { return one(q.Resume(ctx)) }),
	"againAll":    on(itemFields, (*Page).items, func(ctx context.Context, q inspect.Items, a Action) (int, error) { return q.AgainAll(ctx, a.match()) }),
	"discardAll":  on(itemFields, (*Page).items, func(ctx context.Context, q inspect.Items, a Action) (int, error) { return q.DiscardAll(ctx, a.match()) }),
	"cancelAll": on(itemFields, (*Page).items, func(ctx context.Context, q inspect.Items, a Action) (int, error) {
		return q.CancelAll(ctx, a.match(), fmt.Sprintf("statuspage: %s: cancelled by %s", a.page, a.Who))
	}),
	"pauseSchedule":  plans(func(_ context.Context, s inspect.Schedules, name string) (int, error) { return s.Pause(name), nil }),
	"resumeSchedule": plans(func(_ context.Context, s inspect.Schedules, name string) (int, error) { return s.Resume(name), nil }),
	"runNow": plans(func(ctx context.Context, s inspect.Schedules, name string) (int, error) {
		return one(s.RunNow(ctx, name))
	}),
	"retract": on("sink signal", (*Page).sink, func(_ context.Context, s *signals.Sink, a Action) (int, error) { return s.Retract(a.Signal), nil }),
}

// on makes a kind of action on what find returns.
func on[T any](fields string, find func(*Page, Action) (T, error), do func(context.Context, T, Action) (int, error)) kind {
	return kind{fields, func(p *Page, a Action) (deed, error) {
		it, err := find(p, a)
		a.page = p.opts.Name
		return func(ctx context.Context) (int, error) { return do(ctx, it, a) }, err
	}}
}

// one is a change of one thing, unless there is an error, and once is one if it was changed.
func one(err error) (int, error) { return once(err == nil, err) }

func once(changed bool, err error) (int, error) {
	if changed {
		return 1, err
	}
	return 0, err
}

func (p *Page) steered(a Action) (inspect.Actions, error) {
	c, err := pick(p.coordinators, "coordinator", a.Coordinator)
	steered, ok := c.is.(inspect.Actions)
	if err == nil && !ok {
		err = invalid("coordinator %q cannot be steered", c.id)
	}
	return steered, err
}

func (p *Page) queue(a Action) (*cache, error) {
	q, err := pick(p.queues, "queue", a.Queue)
	return q.is, err
}

func (p *Page) items(a Action) (inspect.Items, error) {
	_, known, err := known(pick(p.queues, "queue", a.Queue))
	return known, err
}

// maxChanged is how many items one action changes.
const maxChanged = 500

// match selects the items of an action.
func (a Action) match() inspect.ItemQuery {
	limit, state := min(cmp.Or(a.Limit, maxChanged), maxChanged), cmp.Or(a.State, "halted|dead")
	if state == "any" {
		state = ""
	}
	return inspect.ItemQuery{State: state, Lane: a.Lane, Class: a.Class, Key: a.Key, Err: a.Error, Limit: limit}
}

func (p *Page) sink(a Action) (*signals.Sink, error) {
	s, err := pick(p.sinks, "sink", a.Sink)
	return s.is, err
}

// plans makes a kind of action on a schedule. A name is that which the page shows.
func plans(do func(context.Context, inspect.Schedules, string) (int, error)) kind {
	return kind{"schedules schedule", func(p *Page, a Action) (deed, error) {
		group, err := pick(p.schedules, "group of schedules", a.Schedules)
		if err != nil {
			return nil, err
		}
		s, err := scheduleOf(group, a.Schedule)
		if strings.ContainsAny(s.Name, "*?,") { // as a pattern, it names other schedules, too
			err = absent("there is no schedule %q in %q that can be changed: the name is a pattern", a.Schedule, group.id)
		}
		return func(ctx context.Context) (int, error) { return do(ctx, group.is, s.Name) }, err
	}}
}

const maxAction, maxLimit = 16 << 10, 1_000_000 // largest JSON in bytes, and largest limit that an action sets

// read reads the JSON of an action. It is stricter than package json, so that Allow sees
// exactly the fields that are used.
func (a *Action) read(from io.Reader) error {
	body, err := io.ReadAll(from)
	var fields map[string]json.RawMessage
	if err = cmp.Or(err, json.Unmarshal(body, &fields), json.Unmarshal(body, a)); err != nil {
		return invalid("the body must be the JSON of an action: %v", err)
	}
	is, ok := kinds[a.Kind]
	if !ok {
		return invalid("there is no action %q: the actions are %s", a.Kind, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	for name := range fields {
		if name != "action" && !slices.Contains(strings.Fields(is.fields), name) {
			return invalid("the action %q has fields that are not its own: %s", a.Kind, name)
		}
	}
	once, _ := json.Marshal(fields)
	var given, escaped bytes.Buffer
	json.Compact(&given, body)
	if json.HTMLEscape(&escaped, given.Bytes()); escaped.Len() != len(once) {
		return invalid("a field is there twice")
	}
	if _, given := fields["limit"]; (given || a.Kind == "limit") && (a.Limit < 1 || a.Limit > maxLimit) {
		return invalid("the limit is %d, but must be 1 to %d", a.Limit, maxLimit)
	}
	return nil
}

// act does the action of a request, if it is allowed.
func (p *Page) act(w http.ResponseWriter, r *http.Request) error {
	var a Action
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case new(http.CrossOriginProtection).Check(r) != nil:
		return p.count(&p.stats.CrossSite, failure{code: http.StatusForbidden, text: "the request comes from another site"})
	case p.opts.Allow == nil:
		return p.count(&p.stats.ReadOnly, failure{code: http.StatusForbidden, text: "the page is read-only"})
	case kind != "application/json":
		return p.count(&p.stats.Unreadable, failure{code: http.StatusUnsupportedMediaType, text: "the content type must be application/json"})
	}
	if err := a.read(http.MaxBytesReader(w, r.Body, maxAction)); err != nil {
		return p.count(&p.stats.Unreadable, err)
	}
	a.Who = p.opts.Who(r)
	var do deed
	missing := p.tried(func() (err error) { do, err = kinds[a.Kind].find(p, a); return err })
	shown := Action{Kind: a.Kind, Who: a.Who} // a name that is not on the page may be any text
	if missing == nil {
		shown = a
		shown.Signal, shown.State, shown.Lane = cut(a.Signal), cut(a.State), cut(a.Lane)
		shown.Class, shown.Key, shown.Error = cut(a.Class), cut(a.Key), cut(a.Error)
	}
	key := shown.Coordinator + shown.Queue + shown.Schedule + shown.Sink
	if !p.opts.Allow(r, a) {
		shown.Err = p.count(&p.stats.Denied, failure{code: http.StatusForbidden, text: a.Kind + " is not allowed"})
		if last := p.told.Load(); (last == nil || time.Since(*last) >= time.Second) && p.told.CompareAndSwap(last, new(time.Now())) {
			Refused.Raise(p.opts.Sink, key, shown)
		}
		return shown.Err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), ioTimeout)
	defer cancel()
	if shown.Err = p.count(&p.stats.Acted, missing); missing == nil {
		shown.Err = p.tried(func() (err error) { shown.Changed, err = do(ctx); return err })
		if shown.Done = shown.Changed > 0; a.Queue != "" {
			find(p.queues, a.Queue).is.expire()
		}
	}
	Acted.Raise(p.opts.Sink, key, shown)
	if shown.Err != nil {
		return shown.Err
	}
	p.answer(w, http.StatusOK, fmt.Appendf(nil, `{"done":%t,"changed":%d}`, shown.Done, shown.Changed))
	return nil
}
