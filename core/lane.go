// This file decides which lanes there can be.

package core

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/sched"
)

// A Lane is a priority of the items of one coordinator. It says which items go first, how
// many of the lane may run at once, and which signals refuse or defer its items. See
// [Options.Lanes].
type Lane struct {
	// Name is how [Coordinator.Lane] finds it; case matters.
	//
	//ephemeral:defines lane
	Name string
	// Limit is how many operations of the lane run at once; they also count for
	// [Options.MaxConcurrency]. 0 means no limit for the lane.
	Limit int
	// Depth is how many of its items may be pending before Enqueue waits and TryEnqueue
	// refuses; 0 means [Options.MaxQueued], negative no queue. Each lane has its own
	// queue. Each class has its own queue in each lane: see [Class].
	Depth int
	// CancelOn refuses items of this lane, and DeferOn defers them. [Options.CancelOn] and
	// [Options.DeferOn] do so, too. [Options.ResumeOn] also ends the deferral by the
	// lane's DeferOn.
	//
	//ephemeral:pattern
	CancelOn, DeferOn string
	// MaxDefer is the longest time that raised signals defer an item of this lane; 0
	// means [Options.MaxDefer], negative no limit.
	MaxDefer time.Duration
}

// LaneStats are counters of one lane; see [Stats]. Summed over the lanes,
// Pending = Stats.Pending and Running = Stats.Running.
type LaneStats struct {
	Name    string `json:"name"`
	Pending int    `json:"pending"`
	Running int    `json:"running"`
	Limit   int    `json:"limit"` // how many may run at once; 0: no limit
	Depth   int    `json:"depth"` // how many items without a class may be pending; negative: none
}

// ParseLanes reads lanes from text such as "hot:4, normal, slow:2": names, highest lane
// first, separated by commas. A colon and a limit may follow a name. Blanks around names
// and limits do not matter.
//
//ephemeral:defines lane {spec}
func ParseLanes(spec string) ([]Lane, error) {
	where := strconv.Quote(spec)
	if n := 1 + strings.Count(spec, ","); n > sched.MaxLanes {
		return nil, tooMany(n, where)
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
	if errs = append(errs, checkNames("lane", lanes, where)...); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return lanes, nil
}

func tooMany(n int, where string) error {
	return fmt.Errorf("core: %s has %d entries, but there can be %d", where, n, sched.MaxLanes)
}

// bounded is a [Lane] or a [Class].
type bounded interface {
	place() (name string, limit int)
}

func (l Lane) place() (string, int) { return l.Name, l.Limit }

func (c Class) place() (string, int) { return c.Name, c.Limit }

// checkNames returns an error if names or limits of lanes or classes are not valid. Where
// says in which option they are.
func checkNames[N bounded](kind string, list []N, where string) (errs []error) {
	wrong := func(i int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("core: %s %d of %s: %s", kind, i+1, where, fmt.Sprintf(format, args...)))
	}
	if len(list) > sched.MaxLanes {
		return []error{tooMany(len(list), where)}
	}
	places := make(map[string]int, len(list))
	for i := range list {
		name, limit := list[i].place()
		first, taken := places[name]
		switch {
		case strings.TrimSpace(name) == "":
			wrong(i, "name %q is blank", name)
		case taken:
			wrong(i, "name %q is that of %s %d already", name, kind, first+1)
		default:
			places[name] = i
		}
		if limit < 0 {
			wrong(i, "limit is %d, but must not be negative", limit)
		}
	}
	return errs
}

// find returns the index of the lane or class of that name.
func find[N bounded](list []N, name string, unknown error, coordinator string) (int, error) {
	names := make([]string, len(list))
	for i := range list {
		names[i], _ = list[i].place()
	}
	i := slices.Index(names, name)
	switch {
	case i >= 0:
		return i, nil
	case len(list) == 0:
		return i, fmt.Errorf("%w: %q, as %s has none", unknown, name, coordinator)
	}
	return i, fmt.Errorf("%w: %q is none of %q", unknown, name, names)
}
