package statuspage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	// SignalActed is raised with an [Action] that was allowed, after it was done or failed.
	SignalActed = "statuspage.acted"
	// SignalRefused is raised with an [Action] that Allow refused, at most once a second. Of its
	// names, those that are not on the page are empty. Other refusals raise no signal:
	// [Page.Stats] counts them.
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
//	pauseQueue, resumeQueue       Queue
//	pauseSchedule, resumeSchedule Schedules, Schedule
//	runNow                        Schedules, Schedule
//	retract                       Sink, Signal
//
// Names are those that the page shows. If a request sets a field that is not of its kind, it
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
	Signal      string           `json:"signal,omitempty"` // pattern of names, see [core.Match]

	Who  string `json:"-"` // the person that asks for it: see [Options.Who]
	Done bool   `json:"-"` // in SignalActed: the action changed something
	Err  error  `json:"-"` // in SignalActed and SignalRefused: why it was not done
}

// kinds are the fields of each kind of action.
var kinds = map[string][]string{
	"cancel": {"coordinator", "operation"}, "evict": {"coordinator", "operation"},
	"pause": {"coordinator"}, "resume": {"coordinator"}, "limit": {"coordinator", "limit"},
	"again": {"queue", "item"}, "discard": {"queue", "item"}, "pauseQueue": {"queue"}, "resumeQueue": {"queue"},
	"pauseSchedule": {"schedules", "schedule"}, "resumeSchedule": {"schedules", "schedule"}, "runNow": {"schedules", "schedule"},
	"retract": {"sink", "signal"},
}

// read reads the JSON of an action. It is stricter than package json: an Allow that looks at
// a field must see what is done.
func (a *Action) read(body io.Reader) error {
	fields := map[string]any{
		"action": &a.Kind, "coordinator": &a.Coordinator, "operation": &a.Operation, "limit": &a.Limit, "queue": &a.Queue,
		"item": &a.Item, "schedules": &a.Schedules, "schedule": &a.Schedule, "sink": &a.Sink, "signal": &a.Signal,
	}
	from := json.NewDecoder(body)
	if start, err := from.Token(); err != nil || start != json.Delim('{') {
		return invalid("the body must be the JSON of an action: %v", cmp.Or(err, errors.New("it is no object")))
	}
	var given []string
	for from.More() {
		token, err := from.Token()
		name, _ := token.(string)
		switch {
		case err != nil:
			return invalid("the body must be the JSON of an action: %v", err)
		case slices.Contains(given, name):
			return invalid("the field %q is there twice", name)
		case fields[name] == nil:
			return invalid("there is no field %q", name)
		}
		if err := from.Decode(fields[name]); err != nil {
			return invalid("the field %q: %v", name, err)
		}
		given = append(given, name)
	}
	if _, err := from.Token(); err != nil {
		return invalid("the body must be the JSON of an action: %v", err)
	}
	if _, err := from.Token(); err != io.EOF {
		return invalid("there is more than the JSON of an action")
	}
	own, ok := kinds[a.Kind]
	if !ok {
		return invalid("there is no action %q: the actions are %s", a.Kind, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	for _, name := range given {
		if name != "action" && !slices.Contains(own, name) {
			return invalid("the action %q has fields that are not its own: %s", a.Kind, name)
		}
	}
	return nil
}

// target is the key of the signals of an action.
func (a Action) target() string { return a.Coordinator + a.Queue + a.Schedule + a.Sink }

// known is an action as its signal shows it: the names that are on the page, and no others.
func (p *Page) known(a Action) Action {
	if find(p.coordinators, a.Coordinator) == nil {
		a.Coordinator = ""
	}
	if find(p.queues, a.Queue) == nil {
		a.Queue = ""
	}
	if find(p.sinks, a.Sink) == nil {
		a.Sink = ""
	}
	if group := find(p.schedules, a.Schedules); group == nil || !plans(group, a.Schedule) {
		a.Schedules, a.Schedule = "", ""
	}
	a.Signal = cut(a.Signal)
	return a
}

// plans reports whether a group has a schedule of that name.
func plans(group *entry[core.Schedules], name string) bool {
	return slices.ContainsFunc(group.is.Status(), func(s core.ScheduleStatus) bool { return s.Name == name })
}

const (
	maxAction = 16 << 10  // bytes of the JSON of an action
	maxLimit  = 1_000_000 // that an action sets
)

// act does what a request asks for, if that is allowed.
func (p *Page) act(w http.ResponseWriter, r *http.Request) error {
	t := &p.tally
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case new(http.CrossOriginProtection).Check(r) != nil:
		t.count(&t.stats.CrossSite)
		return failure{http.StatusForbidden, "the request comes from another site"}
	case p.opts.Allow == nil:
		t.count(&t.stats.ReadOnly)
		return failure{http.StatusForbidden, "the page is read-only"}
	case kind != "application/json":
		t.count(&t.stats.Unreadable)
		return failure{http.StatusUnsupportedMediaType, "the content type must be application/json"}
	}
	a := Action{Who: p.opts.Who(r)}
	if err := a.read(http.MaxBytesReader(w, r.Body, maxAction)); err != nil {
		t.count(&t.stats.Unreadable)
		return err
	}
	if !p.opts.Allow(r, a) {
		a.Err = failure{http.StatusForbidden, a.Kind + " is not allowed"}
		if t.count(&t.stats.Denied) {
			shown := p.known(a)
			Refused.Raise(p.opts.Sink, shown.target(), shown)
		}
		return a.Err
	}
	t.count(&t.stats.Acted)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), ioTimeout)
	defer cancel()
	a.Done, a.Err = p.do(ctx, a)
	shown := p.known(a)
	Acted.Raise(p.opts.Sink, shown.target(), shown)
	if a.Err != nil {
		return a.Err
	}
	body, _ := json.Marshal(map[string]bool{"done": a.Done})
	p.answer(w, http.StatusOK, body)
	return nil
}

// do does an action and reports whether that changed something.
func (p *Page) do(ctx context.Context, a Action) (bool, error) {
	switch a.Kind {
	case "cancel", "evict", "pause", "resume", "limit":
		c, err := pick(p.coordinators, "coordinator", a.Coordinator)
		if err != nil {
			return false, err
		}
		steered, ok := c.is.(core.Controller)
		if !ok {
			return false, invalid("coordinator %q cannot be steered", c.id)
		}
		return p.steer(steered, a)
	case "again", "discard", "pauseQueue", "resumeQueue":
		q, err := pick(p.queues, "queue", a.Queue)
		if err != nil {
			return false, err
		}
		defer p.caches[slices.Index(p.queues, q)].expire()
		return serve(ctx, q.is, a)
	case "pauseSchedule", "resumeSchedule", "runNow":
		group, err := pick(p.schedules, "group of schedules", a.Schedules)
		if err != nil {
			return false, err
		}
		if !plans(group, a.Schedule) || strings.ContainsAny(a.Schedule, "*?,") { // a pattern for others
			return false, failure{http.StatusNotFound, fmt.Sprintf("there is no schedule %q in %q", a.Schedule, group.id)}
		}
		return plan(ctx, group.is, a)
	}
	s, err := pick(p.sinks, "sink", a.Sink)
	return err == nil && s.is.Retract(a.Signal) > 0, err
}

func (p *Page) steer(c core.Controller, a Action) (bool, error) {
	switch a.Kind {
	case "cancel":
		return c.Cancel(a.Operation, fmt.Errorf("statuspage: %s: operation %d cancelled by %s", p.opts.Name, a.Operation, a.Who)), nil
	case "evict":
		return c.Evict(a.Operation), nil
	case "pause":
		c.Pause()
	case "resume":
		c.Resume()
	default:
		if a.Limit > maxLimit {
			return false, invalid("the limit is %d, but may be %d at most", a.Limit, maxLimit)
		}
		if err := c.SetMaxConcurrency(a.Limit); err != nil {
			return false, failure{http.StatusBadRequest, err.Error()}
		}
	}
	return true, nil
}

func serve(ctx context.Context, q core.StoredQueue, a Action) (bool, error) {
	var err error
	switch a.Kind {
	case "again":
		return q.Again(ctx, a.Item)
	case "discard":
		return q.Discard(ctx, a.Item)
	case "pauseQueue":
		err = q.Pause(ctx)
	default:
		err = q.Resume(ctx)
	}
	return err == nil, err
}

func plan(ctx context.Context, s core.Schedules, a Action) (bool, error) {
	switch a.Kind {
	case "pauseSchedule":
		return s.Pause(a.Schedule) > 0, nil
	case "resumeSchedule":
		return s.Resume(a.Schedule) > 0, nil
	}
	err := s.RunNow(ctx, a.Schedule)
	return err == nil, err
}
