package core

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// A Lane is a class of items of one coordinator: which go first, how many of
// them may run at once, and which signals hold them up. See [Options.Lanes].
type Lane struct {
	// Name is how [Coordinator.Lane] finds it; case matters.
	Name string
	// Limit is how many of the lane's operations run at once, as part of
	// [Options.MaxConcurrency]; 0 means no limit of its own.
	Limit int
	// Depth is how many of its items may be pending before Enqueue waits and
	// TryEnqueue refuses; 0 means [Options.MaxQueued], negative no queue, as there.
	// A lane's items do not take room in another's queue.
	Depth int
	// CancelOn and DeferOn hold up items of this lane, in addition to
	// [Options.CancelOn] and [Options.DeferOn], which hold up all.
	// [Options.ResumeOn] ends the deferral here as well.
	CancelOn, DeferOn string
	// MaxDefer is how long raised signals that match DeferOn hold up an item of
	// this lane at most; 0 means [Options.MaxDefer], negative no limit.
	MaxDefer time.Duration
}

// LaneStats are counters of one lane; see [Stats]. Summed over the lanes,
// Pending = Stats.Pending and Running = Stats.Running.
type LaneStats struct {
	Name    string `json:"name"`
	Pending int    `json:"pending"`
	Running int    `json:"running"`
	Limit   int    `json:"limit"` // how many may run at once; 0: no limit of its own
	Depth   int    `json:"depth"` // how many may be pending; negative: none
}

// LogValue groups the counters by their JSON names.
func (s LaneStats) LogValue() slog.Value { return StatsValue(s) }

// String is the JSON form.
func (s LaneStats) String() string { return StatsString(s) }

// maxLanes is how many lanes a coordinator can have.
const maxLanes = 64

// defaultLane is the name of the lane for items without a lane of their own.
const defaultLane = "normal"

// ParseLanes reads lanes from text: names from the highest to the lowest lane,
// separated by commas, each with its limit behind a colon if it has one, as in
// "hot:4, normal, slow:2". Blanks around names and limits do not matter.
func ParseLanes(spec string) ([]Lane, error) {
	where := strconv.Quote(spec)
	if n := 1 + strings.Count(spec, ","); n > maxLanes {
		return nil, tooManyLanes(n, where)
	}
	var (
		lanes []Lane
		errs  []error
	)
	for text := range strings.SplitSeq(spec, ",") {
		name, limit, limited := strings.Cut(text, ":")
		l := Lane{Name: strings.TrimSpace(name)}
		if limited {
			limit = strings.TrimSpace(limit)
			if n, err := strconv.Atoi(limit); err == nil && n > 0 {
				l.Limit = n
			} else {
				errs = append(errs, fmt.Errorf("core: lane %d of %s: limit %q must be a number from 1 up", len(lanes)+1, where, limit))
			}
		}
		lanes = append(lanes, l)
	}
	if errs = append(errs, checkLanes(lanes, where)...); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return lanes, nil
}

func tooManyLanes(n int, where string) error {
	return fmt.Errorf("core: %s has %d lanes, but there can be %d", where, n, maxLanes)
}

// checkLanes says what is wrong with lanes, which were found in where.
func checkLanes(lanes []Lane, where string) (errs []error) {
	wrong := func(i int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("core: lane %d of %s: %s", i+1, where, fmt.Sprintf(format, args...)))
	}
	if len(lanes) > maxLanes {
		return []error{tooManyLanes(len(lanes), where)}
	}
	places := make(map[string]int, len(lanes))
	for i := range lanes {
		l := &lanes[i]
		first, taken := places[l.Name]
		switch {
		case strings.TrimSpace(l.Name) == "":
			wrong(i, "name %q is blank", l.Name)
		case taken:
			wrong(i, "name %q is that of lane %d already", l.Name, first+1)
		default:
			places[l.Name] = i
		}
		if l.Limit < 0 {
			wrong(i, "limit is %d, but must not be negative", l.Limit)
		}
		if l.MaxDefer != 0 && l.DeferOn == "" {
			wrong(i, "MaxDefer is %v, but there is no DeferOn that it would bound", l.MaxDefer)
		}
	}
	return errs
}

// door is where items enter: a lane, or none if there is no such lane.
type door struct {
	lane uint8
	err  error
}

// door returns the lane of that name.
func (e *engine) door(name string) door {
	if !e.made().laned {
		return door{err: fmt.Errorf("%w: %q, as %s has no lanes", ErrUnknownLane, name, e.name)}
	}
	var names []string
	for i := range e.lanes {
		if e.lanes[i].Name == name {
			return door{lane: uint8(i)}
		}
		names = append(names, strconv.Quote(e.lanes[i].Name))
	}
	return door{err: fmt.Errorf("%w: %q is none of %s", ErrUnknownLane, name, strings.Join(names, ", "))}
}

// front is the door for items without a lane of their own.
func (e *engine) front() door {
	if d := e.door(defaultLane); d.err == nil {
		return d
	}
	return door{lane: uint8(len(e.lanes) - 1)}
}
