package statuspage

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	// SignalActed is raised with an [Action] that was allowed, after it was done or failed.
	SignalActed = "statuspage.acted"
	// SignalRefused is raised with an [Action] that was not allowed.
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

// bare is the action without the fields that are not of its kind.
func (a Action) bare() Action {
	b := Action{Kind: a.Kind, Who: a.Who}
	switch a.Kind {
	case "cancel", "evict":
		b.Coordinator, b.Operation = a.Coordinator, a.Operation
	case "pause", "resume":
		b.Coordinator = a.Coordinator
	case "limit":
		b.Coordinator, b.Limit = a.Coordinator, a.Limit
	case "again", "discard":
		b.Queue, b.Item = a.Queue, a.Item
	case "pauseQueue", "resumeQueue":
		b.Queue = a.Queue
	case "pauseSchedule", "resumeSchedule", "runNow":
		b.Schedules, b.Schedule = a.Schedules, a.Schedule
	case "retract":
		b.Sink, b.Signal = a.Sink, a.Signal
	}
	return b
}

// target is the key of the signals of an action.
func (a Action) target() string { return a.Coordinator + a.Queue + a.Schedule + a.Sink }

// maxAction is how long the JSON of an action may be.
const maxAction = 16 << 10

// act does what a request asks for, if that is allowed.
func (p *Page) act(w http.ResponseWriter, r *http.Request) error {
	var a Action
	read := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAction))
	read.DisallowUnknownFields()
	unreadable := read.Decode(&a)
	a.Who = p.opts.Who(r)

	refuse := func(text string) error {
		a.Err = failure{http.StatusForbidden, text}
		Refused.Raise(p.opts.Sink, a.target(), a)
		return a.Err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case new(http.CrossOriginProtection).Check(r) != nil:
		return refuse("the request comes from another site")
	case kind != "application/json":
		return failure{http.StatusUnsupportedMediaType, "the content type must be application/json"}
	case unreadable != nil:
		return invalid("the body must be the JSON of an action: %v", unreadable)
	case a != a.bare(): // an Allow that looks at such a field could be misled
		return invalid("the action %q has fields that are not its own", a.Kind)
	case p.opts.Allow == nil:
		return refuse("the page is read-only")
	case !p.opts.Allow(r, a):
		return refuse(a.Kind + " is not allowed")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), ioTimeout)
	defer cancel()
	a.Done, a.Err = p.do(ctx, a)
	Acted.Raise(p.opts.Sink, a.target(), a)
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
		isIt := func(s core.ScheduleStatus) bool { return s.Name == a.Schedule }
		if !slices.ContainsFunc(group.is.Status(), isIt) || strings.ContainsAny(a.Schedule, "*?,") { // a pattern for others
			return false, failure{http.StatusNotFound, fmt.Sprintf("there is no schedule %q in %q", a.Schedule, group.id)}
		}
		return plan(ctx, group.is, a)
	case "retract":
		s, err := pick(p.sinks, "sink", a.Sink)
		return err == nil && s.is.Retract(a.Signal) > 0, err
	}
	return false, invalid("there is no action %q", a.Kind)
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
