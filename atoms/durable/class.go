package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// A Class is a kind of items of one queue that share what is scarce, such as the calls that a
// service allows. It counts items of all processes and in all lanes together. The store decides, by
// its clock, when it claims items. An item that waits for its class holds up later items of its key,
// and nothing else. See [Options.Classes], and [Queue.SetClass] for changes.
type Class struct {
	// Name is how [Queue.Class] finds it; case matters.
	//
	//ephemeral:defines class
	Name string
	// Limit is how many items of the class are claimed at the same time; 0 means no limit of its
	// own.
	Limit int
	// Rate is how many items of the class are claimed each second. The zero Rate means no limit.
	// In any time T, at most PerSecond x T + Burst items are claimed. A claim takes a token. The
	// token does not come back, also if the item is given back or its process dies.
	Rate core.Rate
}

// maxClasses is how many classes a queue can have.
const maxClasses = 64

// classMark separates a class from a lane: see [Insert.Place].
const classMark = "\x01"

// resolved returns the class with defaults, or says what is wrong with its limit and rate.
func (c Class) resolved(what string) (Class, error) {
	var errs [2]error
	if c.Limit < 0 {
		errs[0] = fmt.Errorf("durable: %s: limit is %d, but must not be negative", what, c.Limit)
	}
	switch r, err := c.Rate.Resolved(); {
	case c.Rate == (core.Rate{}):
	case err != nil:
		errs[1] = fmt.Errorf("durable: %s: %w", what, err)
	case r.PerSecond == 0:
		errs[1] = fmt.Errorf("durable: %s: burst is %d, but there is no rate", what, c.Rate.Burst)
	case r.PerSecond == bucket.Unlimited:
		c.Rate = core.Rate{}
	default:
		c.Rate = r
	}
	return c, errors.Join(errs[:]...)
}

// checkName says what is wrong with the name of a lane or a class.
func checkName(what, name string) error {
	if strings.Contains(name, classMark) {
		return fmt.Errorf("durable: %s has a character U+0001: %.40q", what, name)
	}
	return checkText(what, name)
}

// resolvedClasses returns Options.Classes with defaults.
func resolvedClasses(all []Class) ([]Class, error) {
	var errs []error
	all = slices.Clone(all)
	if len(all) > maxClasses {
		errs = append(errs, fmt.Errorf("durable: Options.Classes has %d entries, but there can be %d", len(all), maxClasses))
	}
	for n, c := range all {
		what := fmt.Sprintf("Options.Classes[%d]", n)
		if strings.TrimSpace(c.Name) == "" || slices.ContainsFunc(all[:n], func(other Class) bool { return other.Name == c.Name }) {
			errs = append(errs, fmt.Errorf("durable: %s is named %q, but classes must have different names, which are not blank", what, c.Name))
		}
		var err error
		all[n], err = c.resolved(what)
		errs = append(errs, err, checkName("the name of a class", c.Name))
	}
	return all, errors.Join(errs...)
}

// Class returns a view of the queue that puts items into that class and is otherwise like q. If
// there is no such class among [Options.Classes], Enqueue of the view returns an error that matches
// [core.ErrUnknownClass]. The name "" means no class.
//
//ephemeral:class {name}
//ephemeral:view
func (q *Queue[T]) Class(name string) *Queue[T] {
	opts := q.with
	opts.Class = name
	return q.With(opts)
}

// knows returns an error if the queue has no class of that name.
func (q *queue[T]) knows(class string) error {
	if !slices.ContainsFunc(q.opts.Classes, func(c Class) bool { return c.Name == class }) {
		return fmt.Errorf("durable: queue %q: class %q: %w", q.opts.Name, class, core.ErrUnknownClass)
	}
	return nil
}

// SetClass changes Limit and Rate of the class with that name, for all processes at once; 0 means
// none, as in [Options.Classes]. The store keeps them, also when all processes end. They count
// instead of those in Options until [Queue.ResetClass]. After a change, the class has as many tokens
// as before, but not more than the new burst. A rate that is new starts with a full bucket. Items
// that run go on. If there is no such class in Options, the error matches [core.ErrUnknownClass].
func (q *Queue[T]) SetClass(ctx context.Context, class Class) error {
	what := fmt.Sprintf("SetClass of %q", class.Name)
	class, err := class.resolved(what)
	if err = errors.Join(q.knows(class.Name), err); err != nil {
		return err
	}
	err = q.fail(what, q.store.SetClass(ctx, q.opts.Name, class))
	q.wake(true)
	return err
}

// ResetClass ends the effect of [Queue.SetClass]: what Options say counts again, namely those of
// the process that was the last to begin [Queue.Run].
func (q *Queue[T]) ResetClass(ctx context.Context, name string) error {
	if err := q.knows(name); err != nil {
		return err
	}
	err := q.fail(fmt.Sprintf("ResetClass of %q", name), q.store.ResetClass(ctx, q.opts.Name, name))
	q.wake(true)
	return err
}

// A ClassWait is a class that has no room: items of it are due and were not claimed.
type ClassWait struct {
	Class string
	Next  time.Duration // until it has its next token, positive; 0: it waits for an end, because Limit items run
	Half  time.Duration // until half of its burst is there; not less than Next
}

// ClassStats are counters of a class over all processes; see [Stats]. Summed over the classes,
// Pending <= Ready + Delayed + Retry and Running <= Running of [Stats].
type ClassStats struct {
	Name    string         `json:"name"`
	Pending int            `json:"pending"` // items that are Ready or Retry; 0 in an [Explanation]
	Running int            `json:"running"`
	Limit   int            `json:"limit"`         // that counts now; 0: no limit of its own
	Calls   core.RateStats `json:"calls"`         // of the rate that counts now; Used is since the class has a rate
	Next    time.Time      `json:"next,omitzero"` // when it has its next token, by the clock of the store; zero: now, or it has no rate
	Set     bool           `json:"set"`           // Limit and Calls are those of [Queue.SetClass]
}

// LogValue groups the counters by their JSON names.
func (s ClassStats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s ClassStats) String() string { return core.StatsString(s) }

// waits says why an item of the class is not claimed, at a time.
func (s *ClassStats) waits(now time.Time) (why []string) {
	if s == nil {
		return nil
	}
	if s.Limit > 0 && s.Running >= s.Limit {
		why = append(why, fmt.Sprintf("class %s runs %d of %d", s.Name, s.Running, s.Limit))
	}
	if s.Next.After(now) {
		why = append(why, fmt.Sprintf("class %s has its next token in %v", s.Name, round(s.Next.Sub(now))))
	}
	return why
}

// Place is a text for lane and class together, for engines: in a column for the lane, it gives each
// class in each lane an order of its own. Without a class it is the lane. With one it begins with
// U+0001, which no lane has; so do those of no other items.
func (i Insert) Place() string { return place(i.Lane, i.Class) }

func place(lane, class string) string {
	if class == "" {
		return lane
	}
	return classMark + class + classMark + lane
}

// SetPlace sets Lane and Class as Place has joined them.
func (i *Item) SetPlace(place string) {
	if i.Lane, i.Class = place, ""; strings.HasPrefix(place, classMark) {
		i.Class, i.Lane, _ = strings.Cut(place[len(classMark):], classMark)
	}
}

// batchWait is how long a process waits for more tokens than one, so that it claims several items
// in a turn. If other processes have just taken all, it waits up to lossWait.
const (
	batchWait = 20 * time.Millisecond
	lossWait  = 100 * time.Millisecond
)

// classes is what a pump knows about classes without room.
type classes struct {
	full      bool            // one waits for an end
	next      time.Time       // when one has tokens; zero: none waits for them
	throttled map[string]bool // wait for tokens
}

// note notes the classes that a turn has left without room, in which the process may wait for more
// tokens than one. It returns those that began to wait for tokens, and those that wait no more.
func (c *classes) note(waits []ClassWait, more time.Duration, now time.Time) (throttled []ClassWait, free []string) {
	before := c.throttled
	*c = classes{}
	for _, w := range waits {
		if w.Next == 0 {
			c.full = true
			continue
		}
		if at := now.Add(max(w.Next, min(w.Half, w.Next+more))); c.next.IsZero() || at.Before(c.next) {
			c.next = at
		}
		if !before[w.Class] {
			throttled = append(throttled, w)
		}
		if c.throttled == nil {
			c.throttled = map[string]bool{}
		}
		c.throttled[w.Class] = true
	}
	for class := range before {
		if !c.throttled[class] {
			free = append(free, class)
		}
	}
	slices.Sort(free)
	return throttled, free
}

// await lets the pump, which has claimed so many items, claim again when classes have room.
func (p *pump[T]) await(waits []ClassWait, claimed int) {
	now, more := time.Now(), batchWait
	if claimed == 0 {
		more = lossWait
	}
	throttled, free := p.classes.note(waits, more, now)
	for _, w := range throttled {
		core.Throttled.Raise(p.opts.Sink, w.Class, core.ClassChange{Coordinator: p.opts.Name, Class: w.Class, Next: now.Add(w.Next)})
	}
	for _, class := range free {
		core.Free.Raise(p.opts.Sink, class, core.ClassChange{Coordinator: p.opts.Name, Class: class})
	}
}
