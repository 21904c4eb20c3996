package statuspage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
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
	Acted   = core.NewKind[Action](SignalActed)
	Refused = core.NewKind[Action](SignalRefused)
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
	Signal string `json:"signal,omitempty"` // pattern of names, see [core.Match]

	// Which items of a queue, as in [inspect.ItemQuery]. State "" is those that are not tried any more, and "any" is all.
	State string `json:"state,omitempty"`
	Lane  string `json:"lane,omitempty"`
	Class string `json:"class,omitempty"`
	Key   string `json:"key,omitempty"`
	Error string `json:"error,omitempty"`

	Who     string `json:"-"` // the person that asks for it: see [Options.Who]
	Done    bool   `json:"-"` // in SignalActed: the action changed something
	Changed int    `json:"-"` // in SignalActed: how many items, signals or other things it changed
	Err     error  `json:"-"` // in SignalActed and SignalRefused: why it was not done
}

// A deed does an action and returns how many things it changed.
type deed func(context.Context) (int, error)

// A kind of action has its own fields. It finds the object of an action.
type kind struct {
	fields []string
	find   func(*Page, Action) (deed, error)
}

var kinds = map[string]kind{
	"cancel": steers(func(p *Page, c inspect.Actions, a Action) (bool, error) {
		return c.Cancel(a.Operation, fmt.Errorf("statuspage: %s: operation %d cancelled by %s", p.opts.Name, a.Operation, a.Who)), nil
	}, "operation"),
	"evict":         steers(func(_ *Page, c inspect.Actions, a Action) (bool, error) { return c.Evict(a.Operation), nil }, "operation"),
	"pause":         steers(func(_ *Page, c inspect.Actions, _ Action) (bool, error) { c.Pause(); return true, nil }),
	"resume":        steers(func(_ *Page, c inspect.Actions, _ Action) (bool, error) { c.Resume(); return true, nil }),
	"limit":         steers(func(_ *Page, c inspect.Actions, a Action) (bool, error) { return done(c.SetMaxConcurrency(a.Limit)) }, "limit"),
	"again":         serves(func(ctx context.Context, q *cache, a Action) (int, error) { return once(q.Again(ctx, a.Item)) }, "item"),
	"discard":       serves(func(ctx context.Context, q *cache, a Action) (int, error) { return once(q.Discard(ctx, a.Item)) }, "item"),
	"againAll":      servesMany(silently(inspect.Items.AgainAll)),
	"discardAll":    servesMany(silently(inspect.Items.DiscardAll)),
	"cancelAll":     servesMany(inspect.Items.CancelAll),
	"pauseQueue":    serves(func(ctx context.Context, q *cache, _ Action) (int, error) { return once(done(q.Pause(ctx))) }),
	"resumeQueue":   serves(func(ctx context.Context, q *cache, _ Action) (int, error) { return once(done(q.Resume(ctx))) }),
	"pauseSchedule": plans(func(_ context.Context, s inspect.Schedules, name string) (bool, error) { return s.Pause(name) > 0, nil }),
	"resumeSchedule": plans(func(_ context.Context, s inspect.Schedules, name string) (bool, error) {
		return s.Resume(name) > 0, nil
	}),
	"runNow": plans(func(ctx context.Context, s inspect.Schedules, name string) (bool, error) {
		return done(s.RunNow(ctx, name))
	}),
	"retract": {[]string{"sink", "signal"}, func(p *Page, a Action) (deed, error) {
		s, err := pick(p.sinks, "sink", a.Sink)
		return func(context.Context) (int, error) { return s.is.Retract(a.Signal), nil }, err
	}},
}

func done(err error) (bool, error) { return err == nil, err }

// once is a change of one thing.
func once(changed bool, err error) (int, error) {
	if changed {
		return 1, err
	}
	return 0, err
}

// steers makes a kind of action on a coordinator.
func steers(do func(*Page, inspect.Actions, Action) (bool, error), fields ...string) kind {
	return kind{append(fields, "coordinator"), func(p *Page, a Action) (deed, error) {
		c, err := pick(p.coordinators, "coordinator", a.Coordinator)
		steered, ok := c.is.(inspect.Actions)
		if err == nil && !ok {
			err = invalid("coordinator %q cannot be steered", c.id)
		}
		return func(context.Context) (int, error) { return once(do(p, steered, a)) }, err
	}}
}

// serves makes a kind of action on a queue.
func serves(do func(context.Context, *cache, Action) (int, error), fields ...string) kind {
	return kind{append(fields, "queue"), func(p *Page, a Action) (deed, error) {
		q, err := pick(p.queues, "queue", a.Queue)
		return func(ctx context.Context) (int, error) {
			defer q.is.expire()
			return do(ctx, q.is, a)
		}, err
	}}
}

// maxChanged is how many items one action changes.
const maxChanged = 500

// manyItems is a method of inspect.Items that changes all items that match, for a reason.
type manyItems func(inspect.Items, context.Context, inspect.ItemQuery, string) (int, error)

// silently makes manyItems of a method that takes no reason.
func silently(do func(inspect.Items, context.Context, inspect.ItemQuery) (int, error)) manyItems {
	return func(q inspect.Items, ctx context.Context, match inspect.ItemQuery, _ string) (int, error) {
		return do(q, ctx, match)
	}
}

// servesMany makes a kind of action on items of a queue.
func servesMany(do manyItems) kind {
	return serves(func(ctx context.Context, q *cache, a Action) (int, error) {
		known, err := q.items()
		if err != nil {
			return 0, err
		}
		match := itemQuery(a.State, a.Lane, a.Class, a.Key, a.Error)
		match.Limit = min(cmp.Or(a.Limit, maxChanged), maxChanged)
		return do(known, ctx, match, fmt.Sprintf("statuspage: %s: cancelled by %s", q.page.opts.Name, a.Who))
	}, "state", "lane", "class", "key", "error", "limit")
}

// plans makes a kind of action on a schedule.
func plans(do func(context.Context, inspect.Schedules, string) (bool, error)) kind {
	return kind{[]string{"schedules", "schedule"}, func(p *Page, a Action) (deed, error) {
		group, err := pick(p.schedules, "group of schedules", a.Schedules)
		if err != nil {
			return nil, err
		}
		s, err := scheduleOf(group, a.Schedule)
		if strings.ContainsAny(s.Name, "*?,") { // as a pattern, it names other schedules, too
			err = absent("there is no schedule %q in %q that can be changed: the name is a pattern", a.Schedule, group.id)
		}
		return func(ctx context.Context) (int, error) { return once(do(ctx, group.is, s.Name)) }, err
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
		if name != "action" && !slices.Contains(is.fields, name) {
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

// Stats count requests for actions by result. They always add up:
//
//	Requests = Acted + Denied + ReadOnly + CrossSite + Unreadable
//
// Requests that View or the rule for hosts refuses are not counted.
type Stats struct {
	Requests   uint64 `json:"requests"`
	Acted      uint64 `json:"acted"`      // allowed actions, done or failed
	Denied     uint64 `json:"denied"`     // by Allow
	ReadOnly   uint64 `json:"readOnly"`   // the page has no Allow
	CrossSite  uint64 `json:"crossSite"`  // a browser sent it for another site
	Unreadable uint64 `json:"unreadable"` // the content type or the body was wrong, or the body did not come in time
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// Stats returns the counters, all read at the same moment.
func (p *Page) Stats() Stats {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return p.stats
}

// count counts a request in one of the fields of stats, and returns its error.
func (p *Page) count(field *uint64, err error) error {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	p.stats.Requests++
	*field++
	return err
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
		shown.Signal = cut(a.Signal)
	}
	key := shown.Coordinator + shown.Queue + shown.Schedule + shown.Sink
	if !p.opts.Allow(r, a) {
		shown.Err = p.count(&p.stats.Denied, failure{code: http.StatusForbidden, text: a.Kind + " is not allowed"})
		if last := p.told.Load(); time.Now().UnixNano()-last >= int64(time.Second) && p.told.CompareAndSwap(last, time.Now().UnixNano()) {
			Refused.Raise(p.opts.Sink, key, shown)
		}
		return shown.Err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), ioTimeout)
	defer cancel()
	if shown.Err = p.count(&p.stats.Acted, missing); missing == nil {
		shown.Err = p.tried(func() (err error) { shown.Changed, err = do(ctx); return err })
		shown.Done = shown.Changed > 0
	}
	Acted.Raise(p.opts.Sink, key, shown)
	if shown.Err != nil {
		return shown.Err
	}
	p.answer(w, http.StatusOK, fmt.Appendf(nil, `{"done":%t,"changed":%d}`, shown.Done, shown.Changed))
	return nil
}
