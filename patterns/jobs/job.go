package jobs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a job. The zero value is the default. For patterns, see [signals.Match].
type Options struct {
	// Name identifies the job in its [Runner] and in the names of its signals; "" means the
	// trigger. It must be unique. It must have no wildcards, commas and colons, and no blanks
	// around it.
	//
	//ephemeral:none
	Name string
	// Lane is the lane of the job's runs: a name, or a name with the limit of the lane, such as
	// "hot:4". "" means the lane of the [Group], or else the lane for items without a lane: see
	// [core.Coordinator.Lane].
	//
	//ephemeral:lane
	//ephemeral:defines lane
	Lane string
	// MaxConcurrency is how many runs of this job may run at once, within the limits of the
	// lane and of the Runner. 0 means the limit of the Group, or 1 if the Group has none; negative
	// means no limit. At most 64 jobs of a Runner may have a limit, the default included.
	MaxConcurrency int
	// Priority orders the jobs that one signal starts: the lowest is first in the queue. Jobs
	// of equal priority have the order in which New got them.
	Priority int

	// Key returns the key of a run: see [SignalKey]. Runs of one key run one at
	// a time, over all jobs and lanes. In one lane they run in the order in which they were
	// accepted, but later runs can overtake a run that awaits signals. If Key is nil or returns
	// "", the run has no key and no order. Key is called on the goroutine that raises the signal.
	Key func(signals.Signal) string

	// Await is a list of patterns. A run waits until there is a signal for each pattern. Signals
	// count if they are on the sink when the run is accepted, or are raised later. While the run
	// waits, it has no slot and does not hold its key.
	//
	//ephemeral:pattern
	Await []string
	// AwaitSameKey means that awaited signals must have the key of the trigger.
	AwaitSameKey bool
	// AwaitTimeout is how long a run awaits signals; 0 or negative means no limit. After that
	// time its first attempt fails with [core.ErrTimeout]. A retry looks for the signals again,
	// and does not wait.
	AwaitTimeout time.Duration

	// Timeout is how long an attempt may take; 0 or negative means no limit. After that time its
	// context ends, and the attempt fails with [core.ErrTimeout], even if the handler returns
	// nil. A handler that ignores its context keeps its slot until it returns.
	Timeout time.Duration
	// MaxRetries is how many attempts there are after the first; 0 or negative means none. After
	// a panic, and if the run was cancelled, there is no retry. There is no retry either after an
	// error with a method Permanent() bool that returns true, such as an error of
	// retry.Permanent.
	MaxRetries int
	// RetryDelay is the pause before the first retry; 0 means 100 ms, negative none. Each further
	// pause is twice as long, but at most MaxRetryDelay. The default of MaxRetryDelay is 30 s, or
	// RetryDelay if that is longer; negative means no limit. Each pause is shortened at random by
	// up to half. During a pause the run holds its key, but no slot.
	RetryDelay, MaxRetryDelay time.Duration
	// RetryIf reports whether to retry after an error; nil means always. It is not called for an
	// error that is permanent.
	RetryIf func(error) bool

	// Pin keeps the operation of a run visible from its start on, until it is acknowledged: by a
	// signal that matches responsibility.ack.*, with the text of the operation's id as key. For
	// the text see [core.OperationID.String]. See also [responsibility.Keeper].
	Pin bool
	// ExpireAfter is the longest life of the pin, from the start of the run; 0 means 5 minutes,
	// negative no limit. Without Pin, ExpireAfter is how long the operation is visible after its
	// end; 0 means [core.Options.MaxAge]. At most [core.Options.MaxTracked] operations are kept
	// in one of these ways.
	ExpireAfter time.Duration

	// EmitOnStart, EmitOnComplete and EmitOnFailure are names, separated by commas. The run
	// raises signals with these names before its first attempt, after an attempt that succeeds,
	// and after the last attempt that fails. The signals have the key of the trigger. The prefix
	// of the [Group] is not added.
	//
	//ephemeral:raises
	EmitOnStart, EmitOnComplete, EmitOnFailure string
}

// SignalKey is a Key function. It returns the key of the signal.
func SignalKey(s signals.Signal) string { return s.Key }

// A Job is a handler with the signals that start it. It is a value. Make one with [On],
// [OnKind] or [OnKindKeyed].
type Job struct {
	// Trigger is the pattern of the signals that start the job, with the prefix of its group.
	//
	//ephemeral:pattern
	Trigger string
	Options

	accepts func(signals.Signal) bool   // selects signals, for a job on a kind or a family; nil: all signals
	key     func(signals.Signal) string // for OnKindKeyed
	keyless bool                        // OnKindKeyed got no function for the key
	do      core.Handler
}

// On makes a job. Signals that match pattern start it.
//
//ephemeral:pattern {pattern}
//ephemeral:prefix {Group.Prefix}.
func On(pattern string, do core.Handler, opts Options) Job {
	return Job{Trigger: pattern, Options: opts, do: do}
}

// A Payload finds the payload of a signal. It is a [signals.Kind], a [signals.Family], or a type that
// embeds one of them and accepts only some of its signals.
type Payload[P any] interface {
	From(signals.Signal) (P, bool)
}

// OnKind makes a job. Signals of the [signals.Kind] or [signals.Family] start it, if their payload has
// the type P.
//
//ephemeral:pattern {kind}
func OnKind[P any](kind Payload[P], do func(context.Context, signals.Signal, P) error, opts Options) Job {
	j := Job{Options: opts, accepts: func(s signals.Signal) bool {
		_, ok := kind.From(s)
		return ok
	}}
	switch k := kind.(type) {
	case interface{ Name() string }:
		j.Trigger = k.Name()
	case interface{ Pattern() string }:
		j.Trigger = k.Pattern()
	}
	if do != nil {
		j.do = func(ctx context.Context, s signals.Signal) error {
			p, _ := kind.From(s)
			return do(ctx, s, p)
		}
	}
	return j
}

// OnKindKeyed is OnKind, and the function key makes the key of a run from the payload.
// [Options].Key must be nil.
//
//ephemeral:pattern {kind}
func OnKindKeyed[P any, K ~string](kind Payload[P], key func(P) K, do func(context.Context, signals.Signal, P) error, opts Options) Job {
	j := OnKind(kind, do, opts)
	j.keyless, j.key = key == nil, func(s signals.Signal) string {
		p, _ := kind.From(s)
		return string(key(p))
	}
	return j
}

// emissions lists the names that a job is declared to raise.
func (j *Job) emissions() []string {
	return slices.Concat(list(j.EmitOnStart), list(j.EmitOnComplete), list(j.EmitOnFailure))
}

// follows reports whether a name that is raised without a payload starts the job.
func (j *Job) follows(name string) bool { return j.accepts == nil && signals.Match(j.Trigger, name) }

// name is the name of the job.
func (j *Job) name() string { return cmp.Or(j.Name, j.Trigger) }

// A Group has the common options of several jobs.
type Group struct {
	// Prefix and a dot are put in front of the triggers of [On]. The names of kinds and families do
	// not change, and neither do names that jobs raise or await.
	//
	//ephemeral:none
	Prefix string
	// Lane and MaxConcurrency are used for jobs that do not set their own. The limit is for each
	// job by itself.
	//
	//ephemeral:lane
	//ephemeral:defines lane
	Lane           string
	MaxConcurrency int
}

// Jobs returns the jobs as members of the group.
func (g Group) Jobs(jobs ...Job) []Job {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		j := &jobs[i]
		j.Lane, j.MaxConcurrency = cmp.Or(j.Lane, g.Lane), cmp.Or(j.MaxConcurrency, g.MaxConcurrency)
		if j.accepts != nil || g.Prefix == "" {
			continue
		}
		triggers := list(j.Trigger)
		for i, t := range triggers {
			triggers[i] = strings.TrimSuffix(g.Prefix, ".") + "." + strings.TrimPrefix(t, ".")
		}
		j.Trigger = strings.Join(triggers, ",")
	}
	return jobs
}

// list splits a list at its commas, and removes blanks and empty items.
func list(text string) (items []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
