package jobs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a job. The zero value is the default. Patterns are as described at
// [core.Match]; lists of names are separated by commas.
type Options struct {
	// Name identifies the job among those of a [Runner] and in the names of its signals. It
	// has no wildcards, commas, colons, and blanks around it. "" means the trigger.
	Name string
	// Lane is the lane of its runs: a name, or a name with the limit of the lane, such as
	// "hot:4". "" means that of the [Group], or else the one for items without a lane: see
	// [core.Coordinator.Lane].
	Lane string
	// MaxConcurrency is how many runs of this job may run at once, within the limits of its
	// lane and of the Runner. 0 means that of the Group, or 1 if it has none; negative means
	// no limit.
	MaxConcurrency int
	// Priority orders the jobs that one signal starts: the lowest is first in the queue. Jobs
	// of equal priority have the order in which New got them.
	Priority int

	// Key returns the key of a run: see [SignalKey] and [FixedKey]. Runs of one key run one at
	// a time, over all jobs and lanes. In one lane they run in the order in which they were
	// accepted. If Key is nil or returns "", the run has no key and no order. Key is called on
	// the goroutine that raises the signal.
	Key func(core.Signal) string

	// Await lists patterns. A run waits until each of them has a signal: one in the sink's
	// window when the run is accepted, or one raised later. Meanwhile it takes no slot and
	// holds no key.
	Await []string
	// AwaitSameKey means that awaited signals must have the key of the signal that started the
	// run.
	AwaitSameKey bool
	// AwaitTimeout is how long a run waits for these signals; 0 or negative means no limit.
	// After that its first attempt fails with [core.ErrTimeout]. A retry checks again and does
	// not wait.
	AwaitTimeout time.Duration

	// Timeout is how long an attempt may take; 0 or negative means no limit. After that its
	// context ends, and the attempt fails with [core.ErrTimeout], also if the handler returns
	// nil. A handler that ignores its context keeps its slot until it returns.
	Timeout time.Duration
	// MaxRetries is how many attempts there are after the first; 0 or negative means none.
	// Panics are not retried, nor runs that were cancelled.
	MaxRetries int
	// RetryDelay is the pause before the first retry; 0 means 100 ms, negative none. Each
	// further pause is twice as long, up to MaxRetryDelay; 0 means 30 s, or RetryDelay if that
	// is more, negative no limit. Each pause is shortened at random by up to half. During a
	// pause the run holds its key, but no slot.
	RetryDelay, MaxRetryDelay time.Duration
	// RetryIf reports whether to try again after an error; nil means always.
	RetryIf func(error) bool

	// Pin keeps the operation of a run in the window, from its start on, until a signal
	// responsibility.ack.* with its id as key acknowledges it: see [responsibility.Keeper].
	Pin bool
	// ExpireAfter is how long the pin lasts at most, from the start of the run; 0 means 5
	// minutes, negative no limit. Without Pin it is how long the operation is visible after
	// its end; 0 means [core.Options.MaxAge]. Both ways keep at most [core.Options.MaxTracked]
	// operations.
	ExpireAfter time.Duration

	// EmitOnStart, EmitOnComplete and EmitOnFailure are names of signals that the run raises
	// before its first attempt, after the one that succeeds, and after the last one that
	// fails. They have the key of the signal that started the run, and no prefix.
	EmitOnStart, EmitOnComplete, EmitOnFailure string
	// SwallowErrors makes a run count as succeeded even if its last attempt fails. It still
	// raises the signals of a failure. After a panic the run counts as failed.
	SwallowErrors bool
}

// SignalKey is a Key function. It returns the key of the signal.
func SignalKey(s core.Signal) string { return s.Key }

// FixedKey returns a Key function that returns the same key for all signals.
func FixedKey(key string) func(core.Signal) string {
	return func(core.Signal) string { return key }
}

// A Job is a handler with the signals that start it. It is a value; make one with [On],
// [OnKind] or [OnKindKeyed].
type Job struct {
	// Trigger is the pattern of the signals that start the job, with the prefix of its group.
	Trigger string
	Options

	accepts func(core.Signal) bool   // of a job of a kind or a family; nil: all signals
	key     func(core.Signal) string // of OnKindKeyed
	do      core.Handler
}

// On makes a job that signals start if they match a pattern.
func On(pattern string, do core.Handler, opts Options) Job {
	return Job{Trigger: pattern, Options: opts, do: do}
}

// Payload tells which signals have a payload: a [core.Kind], a [core.Family], or a type that
// embeds one and chooses among its signals.
type Payload[P any] interface {
	From(core.Signal) (P, bool)
}

// OnKind makes a job that signals of a kind or a family start. Signals whose payload has
// another type do not start it.
func OnKind[P any](kind Payload[P], do func(context.Context, core.Signal, P) error, opts Options) Job {
	j := Job{Options: opts, accepts: func(s core.Signal) bool {
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
		j.do = func(ctx context.Context, s core.Signal) error {
			p, _ := kind.From(s)
			return do(ctx, s, p)
		}
	}
	return j
}

// OnKindKeyed is OnKind with a key that is made from the payload; see [Options].Key, which
// must be nil.
func OnKindKeyed[P any, K ~string](kind Payload[P], key func(P) K, do func(context.Context, core.Signal, P) error, opts Options) Job {
	j := OnKind(kind, do, opts)
	j.key = func(s core.Signal) string {
		p, _ := kind.From(s)
		return string(key(p))
	}
	return j
}

// emissions lists the names that a job says it raises.
func (j *Job) emissions() []string {
	return slices.Concat(list(j.EmitOnStart), list(j.EmitOnComplete), list(j.EmitOnFailure))
}

// follows reports whether a name that is raised without a payload starts the job.
func (j *Job) follows(name string) bool { return j.accepts == nil && core.Match(j.Trigger, name) }

// name is the name of the job.
func (j *Job) name() string { return cmp.Or(j.Name, j.Trigger) }

// A Group has the common options of several jobs.
type Group struct {
	// Prefix is put in front of triggers, with a dot between; not of kinds and families, which
	// have names of their own, nor of names that jobs raise or await.
	Prefix string
	// Lane and MaxConcurrency hold for jobs that do not set their own.
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

// list splits a list at its commas.
func list(text string) (items []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
