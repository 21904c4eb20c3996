package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	defaultName          = "jobs"
	defaultMaxSuspended  = 10_000
	defaultRetryDelay    = 100 * time.Millisecond
	defaultMaxRetryDelay = 30 * time.Second
	defaultLane          = "normal" // of core
)

// resolved returns the options with defaults in place of zeroes and 0 in place of "none", or
// says what is wrong with them. A maximum of no limit stays negative.
func (o Options) resolved() (Options, error) {
	var errs []error
	wrong := func(rule string, args ...any) {
		errs = append(errs, fmt.Errorf("jobs: job %q: %s", o.Name, fmt.Sprintf(rule, args...)))
	}
	if !plain(o.Name, "*?,:") {
		wrong("Options.Name must not be empty, nor have wildcards, commas, colons, or blanks around it")
	}
	for _, pattern := range o.Await {
		if len(list(pattern)) == 0 {
			wrong("Options.Await has %q, which no signal matches", pattern)
		}
	}
	if len(o.Await) == 0 && (o.AwaitTimeout != 0 || o.AwaitSameKey) {
		wrong("Options.AwaitTimeout is %v and AwaitSameKey %t, but there is nothing to await", o.AwaitTimeout, o.AwaitSameKey)
	}
	if o.MaxRetries <= 0 && (o.RetryDelay != 0 || o.MaxRetryDelay != 0 || o.RetryIf != nil) {
		wrong("Options.MaxRetries is %d, but RetryDelay, MaxRetryDelay or RetryIf is set", o.MaxRetries)
	}
	if o.MaxRetryDelay > 0 && o.MaxRetryDelay < o.RetryDelay {
		wrong("Options.MaxRetryDelay is %v, but must not be less than RetryDelay, %v", o.MaxRetryDelay, o.RetryDelay)
	}
	if o.ExpireAfter < 0 && !o.Pin {
		wrong("Options.ExpireAfter is %v, but only a pin can be without a limit", o.ExpireAfter)
	}
	for _, name := range slices.Concat(list(o.EmitOnStart), list(o.EmitOnComplete), list(o.EmitOnFailure)) {
		if !plain(name, "*?") {
			wrong("the name %q of a signal to raise has wildcards", name)
		}
	}
	o.Await = slices.Clone(o.Await)
	o.MaxConcurrency = max(0, cmp.Or(o.MaxConcurrency, 1))
	o.AwaitTimeout, o.Timeout, o.MaxRetries = max(0, o.AwaitTimeout), max(0, o.Timeout), max(0, o.MaxRetries)
	o.RetryDelay = max(0, cmp.Or(o.RetryDelay, defaultRetryDelay))
	if o.MaxRetryDelay < 0 {
		o.MaxRetryDelay = math.MaxInt64
	}
	o.MaxRetryDelay = cmp.Or(o.MaxRetryDelay, max(defaultMaxRetryDelay, o.RetryDelay))
	return o, errors.Join(errs...)
}

// check resolves jobs, orders them by priority, and completes the options of their
// coordinator.
func check(sink *core.Sink, jobs []Job, opts core.Options) ([]Job, core.Options, error) {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("jobs: "+format, args...)) }
	opts.Name, opts.MaxSuspended = cmp.Or(opts.Name, defaultName), cmp.Or(opts.MaxSuspended, defaultMaxSuspended)
	switch {
	case sink == nil:
		wrong("the sink is nil, but jobs are set off by signals of a sink")
	case len(jobs) == 0:
		wrong("there are no jobs")
	case opts.Sink != nil && opts.Sink != sink:
		wrong("Options.Sink is another sink than that of the jobs")
	case len(opts.Classes) > 0:
		wrong("Options.Classes must be empty: each job is a class")
	}
	opts.Sink = sink
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Priority, b.Priority) })
	names := make(map[string]bool)
	for i := range jobs {
		j := &jobs[i]
		var err error
		j.Name = j.name()
		if j.Options, err = j.Options.resolved(); err != nil {
			errs = append(errs, err)
		}
		switch {
		case names[j.Name]:
			wrong("job %q: the name is used twice", j.Name)
		case len(list(j.Trigger)) == 0:
			wrong("job %q: the trigger %q matches no signal", j.Name, j.Trigger)
		case j.do == nil:
			wrong("job %q: the handler is nil", j.Name)
		case j.key != nil && j.Key != nil:
			wrong("job %q: Options.Key is set, but it has a key made from the payload", j.Name)
		case len(j.Await) > 0 && opts.MaxSuspended < 0:
			wrong("job %q: it awaits signals, but Options.MaxSuspended is %d", j.Name, opts.MaxSuspended)
		}
		names[j.Name] = true
		for _, e := range j.emissions() {
			if j.follows(e) {
				wrong("job %q: it raises %q, which sets it off again", j.Name, e)
			}
		}
		if j.MaxConcurrency > 0 {
			opts.Classes = append(opts.Classes, core.Class{Name: j.Name, Limit: j.MaxConcurrency})
		}
	}
	lanes, laneErrs := lanesOf(jobs, opts.Lanes)
	opts.Lanes = lanes
	return jobs, opts, errors.Join(append(errs, laneErrs...)...)
}

// lanesOf returns the lanes of a coordinator: those given or, if there are none, those that
// jobs name. It leaves the name of its lane in each job, if there are lanes.
func lanesOf(jobs []Job, given []core.Lane) (lanes []core.Lane, errs []error) {
	lanes = slices.Clone(given)
	find := func(name string) int {
		return slices.IndexFunc(lanes, func(l core.Lane) bool { return l.Name == name })
	}
	limited, unlaned := make(map[string]bool), false
	for i := range jobs {
		j := &jobs[i]
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("jobs: job %q: lane %q %s", j.Name, j.Lane, fmt.Sprintf(format, args...)))
		}
		if j.Lane == "" {
			unlaned = true
			continue
		}
		parsed, err := core.ParseLanes(j.Lane)
		if err != nil || len(parsed) != 1 {
			wrong("must be a name, or a name and a limit like hot:4")
			continue
		}
		lane := parsed[0]
		at := find(lane.Name)
		switch {
		case at < 0 && len(given) > 0:
			wrong("is none of Options.Lanes")
		case at < 0:
			at, lanes = len(lanes), append(lanes, lane)
		case lane.Limit > 0 && lane.Limit != lanes[at].Limit && (len(given) > 0 || limited[lane.Name]):
			wrong("has another limit elsewhere: %d", lanes[at].Limit)
		case lane.Limit > 0:
			lanes[at].Limit = lane.Limit
		}
		limited[lane.Name] = limited[lane.Name] || lane.Limit > 0
		j.Lane = lane.Name
	}
	if unlaned && len(given) == 0 && len(lanes) > 0 && find(defaultLane) < 0 {
		lanes = append(lanes, core.Lane{Name: defaultLane})
	}
	if unlaned && len(lanes) > 0 {
		front := lanes[len(lanes)-1].Name
		if at := find(defaultLane); at >= 0 {
			front = lanes[at].Name
		}
		for i := range jobs {
			jobs[i].Lane = cmp.Or(jobs[i].Lane, front)
		}
	}
	return lanes, errs
}

// emissions lists the names that a job says it raises.
func (j *Job) emissions() []string {
	return slices.Concat(list(j.EmitOnStart), list(j.EmitOnComplete), list(j.EmitOnFailure))
}

// follows reports whether a name that another job raises, without a payload, sets off this
// one.
func (j *Job) follows(name string) bool { return !j.typed && core.Match(j.Trigger, name) }
