package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// rules collects the errors of jobs and options.
type rules struct {
	about string // the job that the errors are about; "": the options
	errs  []error
}

func (r *rules) of(job string) { r.about = fmt.Sprintf("job %q: ", job) }

func (r *rules) unless(ok bool, format string, args ...any) {
	if !ok {
		r.errs = append(r.errs, fmt.Errorf("jobs: %s%s", r.about, fmt.Sprintf(format, args...)))
	}
}

// resolved returns the options with defaults in place of zeroes, or says what is wrong with them.
// Negative values, which mean none, become 0. Only a negative ExpireAfter stays, and a
// MaxRetryDelay without a limit becomes the longest duration.
func (o Options) resolved() (Options, error) {
	var r rules
	r.of(o.Name)
	r.unless(plain(o.Name, "*?,:"), "the name %q is empty, or has wildcards, commas, colons, or blanks around it", o.Name)
	r.unless(!slices.ContainsFunc(o.Await, func(p string) bool { return len(list(p)) == 0 }), "Options.Await is %q, but no signal matches an empty pattern", o.Await)
	r.unless(len(o.Await) > 0 || o.AwaitTimeout == 0 && !o.AwaitSameKey, "Options.AwaitTimeout is %v and AwaitSameKey %t, but there is nothing to await", o.AwaitTimeout, o.AwaitSameKey)
	r.unless(o.MaxRetries > 0 || o.RetryDelay == 0 && o.MaxRetryDelay == 0 && o.RetryIf == nil, "Options.MaxRetries is %d, but RetryDelay, MaxRetryDelay or RetryIf is set", o.MaxRetries)
	r.unless(o.MaxRetryDelay <= 0 || o.MaxRetryDelay >= o.RetryDelay, "Options.MaxRetryDelay is %v, but must not be less than RetryDelay, %v", o.MaxRetryDelay, o.RetryDelay)
	r.unless(o.ExpireAfter >= 0 || o.Pin, "Options.ExpireAfter is %v, but only a pin can be without a limit", o.ExpireAfter)
	o.Await = slices.Clone(o.Await)
	o.MaxConcurrency = max(0, cmp.Or(o.MaxConcurrency, 1))
	o.AwaitTimeout, o.Timeout, o.MaxRetries = max(0, o.AwaitTimeout), max(0, o.Timeout), max(0, o.MaxRetries)
	o.RetryDelay = max(0, cmp.Or(o.RetryDelay, 100*time.Millisecond))
	if o.MaxRetryDelay < 0 {
		o.MaxRetryDelay = math.MaxInt64
	}
	o.MaxRetryDelay = cmp.Or(o.MaxRetryDelay, max(30*time.Second, o.RetryDelay))
	return o, errors.Join(r.errs...)
}

// check resolves jobs, orders them by priority, and completes the options of their
// coordinator.
func check(sink *signals.Sink, jobs []Job, opts core.Options) ([]Job, core.Options, error) {
	var r rules
	r.unless(sink != nil, "the sink is nil, but signals of a sink set off jobs")
	r.unless(opts.Sink == nil || opts.Sink == sink, "Options.Sink is another sink than that of the jobs")
	r.unless(len(opts.Classes) == 0, "Options.Classes must be empty: each job is a class")
	opts.Sink, opts.Name, opts.MaxSuspended = sink, cmp.Or(opts.Name, "jobs"), cmp.Or(opts.MaxSuspended, 10_000)
	jobs = slices.Clone(jobs)
	opts.Lanes = r.lanes(jobs, opts.Lanes)
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Priority, b.Priority) })
	for i := range jobs {
		j := &jobs[i]
		j.Name = j.name()
		o, err := j.Options.resolved()
		r.errs, j.Options = append(r.errs, err), o
		r.of(j.Name)
		r.unless(!slices.ContainsFunc(jobs[:i], func(other Job) bool { return other.Name == j.Name }), "the name is used twice")
		r.unless(len(list(j.Trigger)) > 0, "the trigger %q matches no signal", j.Trigger)
		r.unless(j.do != nil, "the handler is nil")
		r.unless(!j.keyless, "the key function is nil")
		r.unless(j.key == nil || j.Key == nil, "Options.Key is set, but the key is made from the payload")
		r.unless(len(j.Await) == 0 || opts.MaxSuspended > 0, "it awaits signals, but Options.MaxSuspended is %d", opts.MaxSuspended)
		for _, name := range j.emissions() {
			r.unless(plain(name, "*?"), "it raises %q, but a name has no wildcards", name)
			r.unless(!j.follows(name), "it raises %q, which sets it off again", name)
		}
		if j.key != nil {
			j.Key = j.key
		}
		if j.MaxConcurrency > 0 {
			opts.Classes = append(opts.Classes, core.Class{Name: j.Name, Limit: j.MaxConcurrency})
		}
	}
	r.about = ""
	r.unless(len(opts.Classes) <= 64, "%d jobs have MaxConcurrency, at most 64 may", len(opts.Classes)) // as in core
	return jobs, opts, errors.Join(r.errs...)
}

// lanes returns the lanes of the coordinator: the given lanes or, if there are none, the lanes
// that jobs name. If there are any, it sets Lane of each job to the name of its lane.
func (r *rules) lanes(jobs []Job, given []core.Lane) []core.Lane {
	lanes, front := slices.Clone(given), "normal" // as in core
	find := func(name string) int {
		return slices.IndexFunc(lanes, func(l core.Lane) bool { return l.Name == name })
	}
	if len(given) > 0 && find(front) < 0 {
		front = given[len(given)-1].Name
	}
	if len(given) == 0 && !slices.ContainsFunc(jobs, func(j Job) bool { return j.Lane != "" }) {
		return nil
	}
	for i := range jobs {
		j := &jobs[i]
		r.of(j.name())
		name := cmp.Or(j.Lane, front)
		if find(name) >= 0 { // the name may contain a colon
			j.Lane = name
			continue
		}
		parsed, err := core.ParseLanes(name)
		if r.unless(err == nil && len(parsed) == 1, "the lane %q is not a name, or a name and a limit like hot:4", j.Lane); err != nil {
			continue
		}
		lane := parsed[0]
		at := find(lane.Name)
		r.unless(at >= 0 || len(given) == 0, "the lane %q is none of Options.Lanes", lane.Name)
		if at < 0 {
			at, lanes = len(lanes), append(lanes, lane)
		} else if len(given) == 0 && lanes[at].Limit == 0 {
			lanes[at].Limit = lane.Limit
		}
		r.unless(lane.Limit == 0 || lane.Limit == lanes[at].Limit, "the limit of its lane %q is %d here, and %d elsewhere", lane.Name, lane.Limit, lanes[at].Limit)
		j.Lane = lane.Name
	}
	return lanes
}
