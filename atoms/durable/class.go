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
	"github.com/ephemeralgo/ephemeral/core/guard"
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
	// CostRate is how much the claimed items of the class may cost each second, such as the tokens of a model;
	// see [Queue.Cost]. The zero Rate means no limit. A claim takes the cost of its item. [Charge] corrects it.
	// After a crash it stands. An item that costs more than the Burst is claimed when the bucket is full. Then the bucket is
	// below zero, and later items wait until it has filled up again. While the next item of the class lacks cost, no
	// other item of the class is claimed, also in lower lanes. An item that is claimed for its age must have its cost, too.
	CostRate core.Rate
	// Shadow has a Rate and a CostRate that only count, over all processes, to see what they would do before they are in force; nil: none.
	// They must not be looser than Rate and CostRate; a zero one means: as in force. A Limit is an error. An item comes to this
	// virtual queue when it is claimed, first come first served. [Charge] counts there, too, for the items that are claimed after it.
	// [ClassStats] has the counters, and Explain in the process that runs an item says how much longer it would wait. A process
	// raises [core.SignalWouldThrottle] when items that it claims begin to wait there, and when none does any more, at most once
	// a second; Waiting are items that it runs. The processes claim one after the other, as with a Rate. See [core.Limits].
	Shadow *core.Limits

	// DeferOn is a pattern of signals; "" means none. While a signal on Sink matches it, this process claims no items of the class.
	//
	//ephemeral:pattern
	DeferOn string
	// TrialOn is a gate for a service that may work again: while a matching signal is present, this process claims an item of the
	// class only if fewer than Trials items of it run in all processes. Trials 0 means 1; it must not be negative. A process reads
	// the signals of its own Sink. Other classes, and items without a class, do not wait for these gates.
	//
	//ephemeral:pattern
	TrialOn string
	Trials  int
}

// limits is the class with what a store counts.
func (c Class) limits() Class {
	return Class{Name: c.Name, Limit: c.Limit, Rate: c.Rate, CostRate: c.CostRate, Shadow: c.Shadow}
}

// maxClasses is how many classes a queue can have.
const maxClasses = 64

// classMark separates a class from a lane: see [Insert.Place].
const classMark = "\x01"

// resolved returns the class with defaults, or says what is wrong with its limit and rate.
func (c Class) resolved(what string) (Class, error) {
	var errs [5]error
	if c.Limit < 0 {
		errs[0] = fmt.Errorf("durable: %s: limit is %d, but must not be negative", what, c.Limit)
	}
	c.Rate, errs[1] = rateOf(c.Rate, what)
	c.CostRate, errs[2] = rateOf(c.CostRate, what+": CostRate")
	c.Shadow, errs[4] = c.shadow(what)
	switch {
	case c.Trials < 0:
		errs[3] = fmt.Errorf("durable: %s: Trials is %d, but must not be negative", what, c.Trials)
	case c.Trials > 0 && c.TrialOn == "":
		errs[3] = fmt.Errorf("durable: %s: Trials is %d, but there is no TrialOn", what, c.Trials)
	case c.TrialOn != "":
		c.Trials = max(1, c.Trials)
	}
	return c, errors.Join(errs[:]...)
}

// rateOf returns a rate with the default burst; the zero Rate means no rate.
func rateOf(rate core.Rate, what string) (core.Rate, error) {
	switch r, err := rate.Resolved(); {
	case rate == (core.Rate{}):
		return rate, nil
	case err != nil:
		return rate, fmt.Errorf("durable: %s: %w", what, err)
	case r.PerSecond == 0:
		return rate, fmt.Errorf("durable: %s: burst is %d, but there is no rate", what, rate.Burst)
	case r.PerSecond == bucket.Unlimited:
		return core.Rate{}, nil
	default:
		return r, nil
	}
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

// Cost returns a view of the queue whose items cost n, which counts for the CostRate of their class; without that rate it has no
// effect. Otherwise items cost 0. Enqueue of the view returns an error if n is negative or more than 2^40.
//
//ephemeral:view
func (q *Queue[T]) Cost(n int) *Queue[T] {
	opts := q.with
	opts.Cost = n
	return q.With(opts)
}

// Charge takes further calls and cost from the rates of the class of the claim in ctx ([Class].Rate and CostRate). Use it when the
// body knows more than its Enqueue, for example how many tokens an answer had. A bucket without enough tokens gets a debt,
// which its next tokens pay. What is taken counts at once in all processes, also if the claim was lost. Negative numbers give
// tokens back; they count when the end of the claim is stored, and not if the claim was lost, the process dies, or Finish of an engine
// ends the item. Charge makes one call of the store, and only if it takes more than was taken before. Without a claim or a
// class it does nothing. In a transaction that the call would wait for, the error is [core.ErrWouldDeadlock]. After an error, what
// was not taken counts with the end of the claim.
func Charge(ctx context.Context, calls, cost int) error {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok || r.item.Class == "" || r.store == nil {
		return nil
	}
	more := r.charge(calls, cost)
	if more == (tokens{}) {
		return nil
	}
	err := core.ErrWouldDeadlock
	if !inside(ctx, r.store) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.session.node.Lease/4)
		defer cancel()
		err = r.store.Charge(ctx, r.queue, r.item.Class, more[0], more[1])
	}
	if err != nil && !guard.Is(err, ErrUndecided) {
		r.mu.Lock()
		r.taken = tokens{r.taken[0] - more[0], r.taken[1] - more[1]}
		r.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("durable: queue %q: charge item %d: %w", r.queue, r.item.ID, err)
	}
	return nil
}

// tokens are of the two rates of a class.
type tokens [2]int64

// charge adds to what the run is charged, and returns what is to be taken now.
func (r *run) charge(calls, cost int) (more tokens) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, by := range []int{calls, cost} {
		r.charged[n] += max(-bucket.MaxBurst, min(int64(by), bucket.MaxBurst))
		more[n] = max(0, r.charged[n]-r.taken[n])
		r.taken[n] += more[n]
	}
	return more
}

// owed is what is to be taken, or given back, with the end of the run.
func (r *run) owed() tokens {
	r.mu.Lock()
	defer r.mu.Unlock()
	return tokens{r.charged[0] - r.taken[0], r.charged[1] - r.taken[1]}
}

// gates are the classes that the signals of this process hold up now.
func (q *queue) gates() (gates []Gate) {
	for _, c := range q.opts.Classes {
		switch {
		case c.DeferOn != "" && q.opts.Sink.Has(c.DeferOn):
			gates = append(gates, Gate{Class: c.Name})
		case c.TrialOn != "" && q.opts.Sink.Has(c.TrialOn):
			gates = append(gates, Gate{c.Name, c.Trials})
		}
	}
	return gates
}

// closed reports whether the signals of this process let no item of the class start.
func (q *queue) closed(class string) bool {
	return class != "" && slices.ContainsFunc(q.opts.Classes, func(c Class) bool {
		return c.Name == class && c.DeferOn != "" && q.opts.Sink.Has(c.DeferOn)
	})
}

// note says why this process does not claim, for Explain: a text about the queue, or one for each class that is held up.
func (q *queue) note() string {
	if q.deferred() {
		return "waits while " + q.opts.DeferOn + " is present"
	}
	var note strings.Builder
	for _, c := range q.opts.Classes {
		if q.closed(c.Name) {
			note.WriteString(classMark + c.Name + classMark + "does not claim class " + c.Name + " while " + c.DeferOn + " is present")
		}
	}
	return note.String()
}

// noteFor is the part of a note that is about items of a class.
func noteFor(note, class string) string {
	if !strings.HasPrefix(note, classMark) {
		return note
	}
	for parts := strings.Split(note[1:], classMark); len(parts) >= 2; parts = parts[2:] {
		if parts[0] == class {
			return parts[1]
		}
	}
	return ""
}

// knows returns an error if the queue has no class of that name.
func (q *queue) knows(class string) error {
	if !slices.ContainsFunc(q.opts.Classes, func(c Class) bool { return c.Name == class }) {
		return fmt.Errorf("durable: queue %q: class %q: %w", q.opts.Name, class, core.ErrUnknownClass)
	}
	return nil
}

// SetClass changes Limit, Rate, CostRate and Shadow of the class with that name, for all processes at once; 0 and nil mean
// none, as in [Options.Classes]. The other fields must be zero or equal those in Options. The store keeps them, also when all processes end. They count
// instead of those in Options until [Queue.ResetClass]. After a change, the class has as many tokens
// as before, but not more than the new burst. A rate that is new starts with a full bucket. Items
// that run go on. A Shadow with other values begins to count from zero. If there is no such class in Options, the error matches [core.ErrUnknownClass].
func (q *Queue[T]) SetClass(ctx context.Context, class Class) error {
	return q.queue.setClass(ctx, class)
}

func (q *queue) setClass(ctx context.Context, class Class) error {
	what := fmt.Sprintf("SetClass of %q", class.Name)
	err := q.knows(class.Name)
	for _, c := range q.opts.Classes {
		if c.Name == class.Name && (class.DeferOn != "" && class.DeferOn != c.DeferOn || class.TrialOn != "" && class.TrialOn != c.TrialOn || class.Trials != 0 && class.Trials != c.Trials) {
			err = fmt.Errorf("durable: %s: only Limit, Rate, CostRate and Shadow can change", what)
		}
	}
	class, wrong := class.limits().resolved(what)
	if err = errors.Join(err, wrong); err != nil {
		return err
	}
	err = q.fail(what, q.store.SetClass(ctx, q.opts.Name, class))
	q.wake(true)
	return err
}

// ResetClass ends the effect of [Queue.SetClass]: what Options say counts again, namely those of
// the process that was the last to begin [Queue.Run].
func (q *Queue[T]) ResetClass(ctx context.Context, name string) error {
	return q.queue.resetClass(ctx, name)
}

func (q *queue) resetClass(ctx context.Context, name string) error {
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
	Next  time.Duration // until it has its next token, or the cost of its next item, positive; 0: it waits for an end, because Limit items run
	Half  time.Duration // until half of its burst is there; not less than Next
}

// ClassStats are counters of a class over all processes; see [Stats]. Summed over the classes,
// Pending <= Ready + Delayed + Retry and Running <= Running of [Stats].
type ClassStats struct {
	Name     string         `json:"name"`
	Pending  int            `json:"pending"` // items that are Ready or Retry; 0 in an [Explanation]
	Running  int            `json:"running"`
	Limit    int            `json:"limit"`             // that counts now; 0: no limit of its own
	Calls    core.RateStats `json:"calls"`             // of the rate that counts now; Used is since the class has a rate
	Cost     core.RateStats `json:"cost,omitzero"`     // of the CostRate that counts now
	Next     time.Time      `json:"next,omitzero"`     // when both of its buckets have a token, or in an [Explanation] what the item costs, by the clock of the store; zero: now, or it has no rate
	NextCost time.Time      `json:"nextCost,omitzero"` // the same for the CostRate only: if it is Next, that rate comes last
	Set      bool           `json:"set"`               // Limit, Calls, Cost and Shadow are those of [Queue.SetClass]

	Shadow core.ShadowStats `json:"shadow,omitzero"` // what [Class].Shadow has counted since it was set, of claims; Refused and Waiting are 0, and Waited has those that still wait
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
		of := "Rate"
		if !s.NextCost.Before(s.Next) {
			of = "CostRate"
		}
		why = append(why, fmt.Sprintf("class %s has its next token of %s in %v", s.Name, of, round(s.Next.Sub(now))))
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
func (p *pump) await(waits []ClassWait, claimed int) {
	now, more := time.Now(), batchWait
	if claimed == 0 {
		more = lossWait
	}
	throttled, free := p.classes.note(waits, more, now)
	for _, w := range throttled {
		core.Throttled.Raise(p.queue.opts.Sink, w.Class, core.ClassChange{Coordinator: p.queue.opts.Name, Class: w.Class, Next: now.Add(w.Next)})
	}
	for _, class := range free {
		core.Free.Raise(p.queue.opts.Sink, class, core.ClassChange{Coordinator: p.queue.opts.Name, Class: class})
	}
}
