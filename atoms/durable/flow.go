package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// The errors with which calls of a [Flow] end the body. They stand for no failure ([guard.Failed]).
var (
	// ErrParked means that the flow goes on later: the body is to return. Whatever it returns, its item is parked, and each later call
	// in this run returns ErrParked.
	ErrParked error = outcome("durable: the flow is parked, and its body begins again later")
	// ErrUndoing means that the flow is undone, and the step has no result.
	ErrUndoing error = outcome("durable: the flow is undone, and this step has no result")
)

// ErrLate means that no signal came before the deadline of an Await. It is permanent.
var ErrLate = Permanent(errors.New("durable: no signal came before the deadline"))

type outcome string

func (o outcome) Error() string { return string(o) }
func (outcome) Failed() bool    { return false }

const (
	undoAttempts  = 8                // of the Compensate of a step
	unservedPause = 10 * time.Second // of a flow that a newer version has begun
)

// A Flow is the flow of a running item: its steps are kept in the store, so that the body can begin again. Package flow is its
// face for bodies; engines call Within. Its methods may be called concurrently. A nil Flow returns errors.
type Flow struct {
	of  *flows
	run *run

	mu       sync.Mutex
	journal  Journal
	known    map[string]Step    // that the store had when the body began
	seen     map[string]uintptr // names of this run, and where they were called
	undos    map[string]func(ctx context.Context, data []byte, known bool) error
	pending  []Step // to be written before the next step begins
	kept     bool   // the store knows of the flow
	seq      int
	size     int // bytes of results
	running  int
	alone    string // the name of the step with a class that runs
	park     *Park
	dead     error // all later calls return it
	progress bool  // a step was done, or undone
	decided  *End
	replay   bool
	shown    context.CancelCauseFunc // ends the context of the body; nil unless it is undone
}

// flows is what the flows of a queue share.
type flows struct {
	store   Store
	opts    Options
	policy  policy
	knows   func(class string) error
	records *groupcommit.Committer[*recording]
}

type recording struct {
	Record
	current bool
}

func newFlows(store Store, opts Options, p policy, knows func(string) error) *flows {
	f := &flows{store: store, opts: opts, policy: p, knows: knows}
	f.records = core.Must(groupcommit.New(f.write, groupcommit.Options{Name: opts.Name, MaxBatch: 100}))
	return f
}

// write writes the steps of several flows in one transaction.
func (f *flows) write(ctx context.Context, group []*recording, _ []error) error {
	var all []Record
	place := map[Held]int{} // by claim: a body can outlive its own
	for _, r := range group {
		at, ok := place[Held{ID: r.ID, Token: r.Token}]
		if !ok {
			at, place[Held{ID: r.ID, Token: r.Token}] = len(all), len(all)
			all = append(all, Record{ID: r.ID, Token: r.Token, Version: r.Version})
		}
		for _, s := range r.Steps {
			all[at].Steps = slices.DeleteFunc(all[at].Steps, func(o Step) bool { return o.Name == s.Name })
			all[at].Steps = append(all[at].Steps, s)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.Lease)
	defer cancel()
	current, err := f.store.Record(ctx, f.opts.Name, all)
	for _, r := range group {
		r.current = err == nil && current[place[Held{ID: r.ID, Token: r.Token}]]
	}
	return err
}

// FlowFrom returns the flow of the item whose body has ctx, or nil.
func FlowFrom(ctx context.Context) *Flow {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil || r.flows == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flow == nil {
		r.flow = newFlow(r.flows, r, Journal{Version: r.flows.opts.Version, Class: r.item.Class})
	}
	return r.flow
}

func newFlow(of *flows, r *run, j Journal) *Flow {
	f := &Flow{of: of, run: r, journal: j, kept: r.item.Flow > 0, known: map[string]Step{}, seen: map[string]uintptr{}, undos: map[string]func(context.Context, []byte, bool) error{}}
	for _, s := range j.Steps {
		f.known[s.Name], f.seq, f.size = s, max(f.seq, s.Seq), f.size+len(s.Data)
	}
	return f
}

// ReplayFlow returns a context in which a flow answers from a journal, for package flowtest. When all steps of the journal were called, it ends:
// further calls return [ErrParked]. Before that, a step that is not in the journal is an error. End returns the steps that the body called and the journal
// lacks, and those that the journal has and the body did not call.
func ReplayFlow(ctx context.Context, j Journal) (with context.Context, end func() (unknown, unused []string)) {
	opts, _ := Options{}.resolved()
	r := &run{queue: opts.Name, maxResult: opts.MaxResult, item: Item{ID: 1, Flow: 1, Class: j.Class}}
	r.flows = &flows{opts: opts, knows: func(string) error { return nil }}
	r.flow = newFlow(r.flows, r, j)
	r.flow.replay = true
	return context.WithValue(ctx, runKey{}, r), func() (unknown, unused []string) {
		r.flow.mu.Lock()
		defer r.flow.mu.Unlock()
		for name := range r.flow.seen {
			if _, ok := r.flow.known[name]; !ok {
				unknown = append(unknown, name)
			}
		}
		slices.Sort(unknown)
		return unknown, r.flow.strays()
	}
}

// strays are the steps that the body did not ask for.
func (f *Flow) strays() (names []string) {
	for _, s := range f.journal.Steps {
		if _, ok := f.seen[s.Name]; !ok && s.State != StepBegun {
			names = append(names, s.Name)
		}
	}
	return names
}

// Version is the Options.Version of the program in which the flow began; 0 for a nil Flow.
func (f *Flow) Version() int {
	if f == nil {
		return 0
	}
	return f.journal.Version
}

// A Call is a call of a step. Do returns the JSON of its result. Undo gets that, if Known.
type Call struct {
	Name  string
	Class string // "": that of the item
	Do    func(ctx context.Context) ([]byte, error)
	Undo  func(ctx context.Context, data []byte, known bool) error // nil: there is nothing to undo
	At    uintptr                                                  // where it is called, of runtime.Callers; 0: by the caller of the caller
}

// fail is a permanent error about a step.
func (f *Flow) fail(name, format string, args ...any) error {
	return Permanent(fmt.Errorf("durable: item %d of queue %q: step %.80q: %w", f.run.item.ID, f.run.queue, name, fmt.Errorf(format, args...)))
}

// enter begins a call, under the mutex, and returns what is known of the step.
func (f *Flow) enter(name string, at uintptr, waits bool) (old Step, err error) {
	switch err := checkText("the name", name); {
	case err != nil:
		return old, f.fail(name, "%w", err)
	case name == "":
		return old, f.fail(name, "it needs a name")
	}
	if f.dead != nil {
		return old, f.dead
	}
	if f.park != nil {
		return old, ErrParked
	}
	if before, ok := f.seen[name]; ok {
		return old, f.fail(name, "the name is used twice in one run: at %s and at %s", site(before), site(at))
	}
	f.seen[name] = at
	old, ok := f.known[name]
	if ok && waits == old.Until.IsZero() {
		return old, f.fail(name, "the name was that of a step of another kind: a step that runs, or one that waits")
	}
	if !ok && !f.undoing() && len(f.seen) > f.of.opts.MaxSteps {
		return old, f.fail(name, "the flow has more than %d steps: Options.MaxSteps", f.of.opts.MaxSteps)
	}
	return old, nil
}

func (f *Flow) undoing() bool { return f.run.item.Flow == 2 }

func site(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return fmt.Sprintf("%s:%d", frame.File, frame.Line)
}

// caller is the caller of the function that called a method of the flow.
func caller(at uintptr) uintptr {
	var pcs [1]uintptr
	if at == 0 && runtime.Callers(4, pcs[:]) > 0 {
		return pcs[0]
	}
	return at
}

// begin begins a step. Answer reports that it has run already, with its data.
func (f *Flow) begin(c Call, at uintptr) (s Step, write []Step, answer bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err = f.enter(c.Name, at, false)
	if err != nil {
		return s, nil, false, err
	}
	if s.State != 0 && c.Undo != nil {
		f.undos[c.Name] = c.Undo
		f.allSeen()
	}
	class := cmp.Or(c.Class, f.journal.Class)
	switch {
	case len(s.Data) > 0 && s.State != StepBegun:
		return s, nil, true, nil
	case f.undoing():
		return s, nil, false, ErrUndoing
	case f.replay:
		return s, nil, false, f.beyond(s, c.Name)
	case f.alone != "":
		return s, nil, false, f.fail(c.Name, "step %.80q has a class, so it must run alone", f.alone)
	case c.Class != "" && f.running > 0:
		return s, nil, false, f.fail(c.Name, "it has a class, so it must run alone, and %d other steps run", f.running)
	case class != f.run.item.Class:
		if class != "" && f.of.knows(class) != nil {
			return s, nil, false, f.fail(c.Name, "%w", f.of.knows(class))
		}
		f.park = &Park{Class: class}
		return s, nil, false, ErrParked
	}
	if c.Class != "" {
		f.alone = c.Name
	}
	f.running++
	write = slices.Clone(f.pending)
	if s.State == 0 {
		f.seq++
		s = Step{Name: c.Name, Seq: f.seq, State: StepBegun, Compensates: c.Undo != nil, Attempt: f.run.item.Attempts}
		if s.Compensates {
			write = append(write, s)
		}
	}
	return s, write, false, nil
}

// beyond is the answer of a replay for a step that is not done: the history ends here, or it lacks the step.
func (f *Flow) beyond(s Step, name string) error {
	if s.State == 0 && len(f.strays()) > 0 {
		return f.fail(name, "the history has no such step")
	}
	if s.State == 0 {
		delete(f.seen, name)
	}
	f.park = &Park{}
	return ErrParked
}

// allSeen ends the context of a body that only shows its Compensates, once it has shown them all.
func (f *Flow) allSeen() {
	if f.shown != nil && !slices.ContainsFunc(f.journal.Steps, func(s Step) bool { return s.Compensates && s.State != StepUndone && f.undos[s.Name] == nil }) {
		f.shown(ErrUndoing)
	}
}

// exit ends a step. A step that is done is written later, unless it is written already.
func (f *Flow) exit(s Step, done, pending bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	if f.alone == s.Name {
		f.alone = ""
	}
	if !done {
		return nil
	}
	if f.dead != nil {
		return f.dead
	}
	f.progress = true
	f.size += len(s.Data)
	if pending {
		f.pending = append(f.pending, s)
	}
	return nil
}

// wrote forgets what is written.
func (f *Flow) wrote(steps []Step) {
	f.kept = true
	f.pending = slices.DeleteFunc(f.pending, func(p Step) bool {
		return slices.ContainsFunc(steps, func(s Step) bool { return s.Name == p.Name && s.State == p.State })
	})
}

// record writes steps, together with those of other flows.
func (f *Flow) record(ctx context.Context, steps []Step) error {
	if len(steps) == 0 {
		return nil
	}
	if inside(ctx, f.of.store) {
		return fmt.Errorf("durable: queue %q: record steps of item %d, inside a transaction that this would wait for: %w", f.run.queue, f.run.item.ID, core.ErrWouldDeadlock)
	}
	r := &recording{Record: f.toRecord(steps)}
	err := f.of.records.Do(ctx, r)
	if guard.Is(err, groupcommit.ErrUndecided) {
		err = fmt.Errorf("%w: %w", ErrUndecided, err)
	}
	if err != nil {
		return fmt.Errorf("durable: queue %q: record steps of item %d: %w", f.run.queue, f.run.item.ID, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !r.current {
		f.dead = fmt.Errorf("durable: queue %q: the steps of item %d: %w", f.run.queue, f.run.item.ID, ErrLeaseLost)
		return f.dead
	}
	f.wrote(steps)
	return nil
}

func (f *Flow) toRecord(steps []Step) Record {
	return Record{ID: f.run.item.ID, Token: f.run.item.Token, Version: f.journal.Version, Steps: steps}
}

// Do runs a step, or returns the data that it has returned in an earlier run.
func (f *Flow) Do(ctx context.Context, c Call) (data []byte, err error) {
	if f == nil {
		return nil, errNoFlow
	}
	s, write, answer, err := f.begin(c, caller(c.At))
	if err != nil || answer {
		return s.Data, err
	}
	done := false
	defer func() {
		if ended := f.exit(s, done, true); err == nil {
			err = ended
		}
	}()
	if err = f.record(ctx, write); err != nil {
		return nil, err
	}
	began := time.Now()
	if s.Data, err = f.do(ctx, c.Name, c.Do); err != nil {
		return nil, err
	}
	if err = f.fits(c.Name, len(s.Data)); err != nil {
		return nil, err
	}
	s.State, s.Took, s.Attempt, done = StepDone, time.Since(began), f.run.item.Attempts, true
	return s.Data, nil
}

// A stepStarter is a [Carrier] that also makes spans of steps. End is called with the error of the step.
type stepStarter interface {
	StartStep(ctx context.Context, name string, attempt int) (with context.Context, end func(err error))
}

// errPanicked is what a span gets of a step that panics.
var errPanicked = errors.New("durable: the step has panicked")

// do calls the function of a step, with a span if there is a Telemetry.
func (f *Flow) do(ctx context.Context, name string, fn func(ctx context.Context) ([]byte, error)) (data []byte, err error) {
	if starts, ok := f.of.opts.Carrier.(stepStarter); ok {
		var with context.Context
		var end func(error)
		_ = guard.Do("Carrier.StartStep", func() { with, end = starts.StartStep(ctx, name, f.run.item.Attempts) })
		if with != nil {
			ctx = with
		}
		if end != nil {
			err = errPanicked
			defer func() { _ = guard.Do("the end of Carrier.StartStep", func() { end(err) }) }()
		}
	}
	data, err = fn(ctx)
	return data, err
}

// fits says whether a result can be kept.
func (f *Flow) fits(name string, size int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o := f.of.opts; {
	case size > o.MaxResult:
		return f.fail(name, "its result has %d bytes, more than %d: Options.MaxResult", size, o.MaxResult)
	case f.size+size > o.MaxFlow:
		return f.fail(name, "with its result the flow has %d bytes, more than %d: Options.MaxFlow", f.size+size, o.MaxFlow)
	}
	return nil
}

// Within runs a step whose effect and record are committed in one transaction, for engines: Step of an engine begins a transaction, calls the function of the user,
// then writes what record returns as [Store].Record does, and commits. If the claim is not current, it rolls back and returns
// [ErrLeaseLost]. After an error of transact, nothing counts as written.
func (f *Flow) Within(ctx context.Context, name string, transact func(ctx context.Context, record func() Record) error) (err error) {
	if f == nil {
		return errNoFlow
	}
	s, write, answer, err := f.begin(Call{Name: name}, caller(0))
	if err != nil || answer {
		return err
	}
	done, began := false, time.Now()
	defer func() {
		if ended := f.exit(s, done, false); err == nil {
			err = ended
		}
	}()
	_, err = f.do(ctx, name, func(ctx context.Context) ([]byte, error) {
		return nil, transact(ctx, func() Record {
			s.State, s.Took, s.Data = StepDone, time.Since(began), []byte("null")
			return f.toRecord(append(write, s))
		})
	})
	if done = err == nil; done {
		f.mu.Lock()
		f.wrote(write)
		f.mu.Unlock()
	}
	return err
}

// Await returns a step with a signal whose name matches the pattern, or parks the flow until there is one, for at most d since its first
// call; then the error is [ErrLate]. A pattern "" matches none, and there is no error: it sleeps for d.
//
//ephemeral:none
func (f *Flow) Await(name, pattern string, d time.Duration) (s Step, err error) {
	if f == nil {
		return s, errNoFlow
	}
	at := caller(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, err = f.enter(name, at, true); err == nil {
		err = checkText("the pattern", pattern)
	}
	switch {
	case err != nil:
		return s, err
	case s.State == StepDone:
	case f.undoing():
		return s, ErrUndoing
	case s.State == StepBegun && !s.Until.After(f.journal.Time):
		s.State, s.Attempt, f.progress = StepDone, f.run.item.Attempts, true
		f.pending = append(f.pending, s)
	case f.replay:
		return s, f.beyond(s, name)
	default:
		if s.State == 0 {
			f.seq++
			s.Seq = f.seq
		}
		f.park = &Park{Step: name, Seq: s.Seq, Pattern: pattern, For: max(0, d).Truncate(time.Microsecond)}
		return s, ErrParked
	}
	if s.Signal == "" && pattern != "" {
		err = fmt.Errorf("durable: step %.80q: %w", name, ErrLate)
	}
	return s, err
}

var errNoFlow = Permanent(errors.New("durable: steps are for the body of an item, called with its context"))

// attempt runs the body of an item: if it has a flow, with its steps.
func (q *queue) attempt(ctx context.Context, t *task, work func(ctx context.Context) error) error {
	limit := cmp.Or(t.item.Timeout, q.opts.Timeout)
	body := func(ctx context.Context) error { return timed(ctx, limit, work) }
	if t.item.Flow > 0 {
		in, cancel := context.WithTimeout(ctx, q.opts.Lease/4)
		j, ok, err := q.store.Journal(in, q.opts.Name, t.item.ID, true)
		cancel()
		switch {
		case err != nil || !ok:
			return Snooze(q.opts.Poll, guard.Text(q.fail("read the steps of the item", cmp.Or(err, ErrUnknown))))
		case j.Version > q.opts.Version:
			i := t.item
			i.Data, i.Note = nil, fmt.Sprintf("the flow has begun with version %d, and this process, %s, has version %d", j.Version, q.opts.Node, q.opts.Version)
			FlowUnserved.Raise(q.opts.Sink, q.opts.Name, i)
			return Snooze(unservedPause, i.Note)
		}
		f := newFlow(t.flows, t.run, j)
		t.mu.Lock()
		t.flow = f
		t.mu.Unlock()
		if f.undoing() {
			return f.undo(ctx, body, limit, t.wrong)
		}
	}
	err := body(ctx)
	if f := t.hasFlow(); f != nil && f.isParked() {
		return ErrParked
	}
	return err
}

// hasFlow returns the flow, or nil if there is none yet.
func (r *run) hasFlow() *Flow {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flow
}

func (f *Flow) isParked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.park != nil
}

// undo lets the body run, to see the Compensates, and calls them backwards. It decides the end.
func (f *Flow) undo(ctx context.Context, body func(ctx context.Context) error, limit time.Duration, wrong error) error {
	attempts, err := f.run.item.Attempts, wrong
	f.decided = &End{Kind: EndRetry, After: f.of.policy.delay(attempts, 1), Err: "durable: half undone: runtime.Goexit was called"} // if nothing else is decided
	if err == nil && attempts <= undoAttempts {
		of, shown := context.WithCancelCause(ctx)
		defer shown(nil)
		f.mu.Lock()
		f.shown = shown
		f.allSeen()
		f.mu.Unlock()
		if panicked := guard.Do("the body", func() { err = body(of) }); panicked != nil {
			err = panicked
		}
	}
	var todo []Step
	for _, s := range slices.Backward(f.journal.Steps) {
		if s.Compensates && s.State != StepUndone {
			todo = append(todo, s)
		}
	}
	for n, s := range todo {
		f.mu.Lock()
		undo := f.undos[s.Name]
		f.mu.Unlock()
		began := time.Now()
		if attempts > undoAttempts {
			err = Permanent(fmt.Errorf("durable: all %d attempts have begun, and none has ended", undoAttempts))
		} else if undo == nil {
			err = Permanent(fmt.Errorf("durable: its Compensate was not seen, because the body returned: %s", guard.Text(cmp.Or(err, errors.New("no error")))))
		} else if panicked := guard.Do("Compensate", func() {
			err = timed(ctx, limit, func(ctx context.Context) error { return undo(ctx, s.Data, s.State == StepDone) })
		}); panicked != nil {
			err = panicked
		}
		undone := err == nil
		if undone {
			s.State, s.Took, s.Attempt = StepUndone, time.Since(began), f.run.item.Attempts
			if err = f.record(ctx, []Step{s}); err == nil {
				f.mu.Lock()
				attempts, f.progress = 1, true
				f.mu.Unlock()
				continue
			}
		}
		if ctx.Err() != nil {
			f.decided = &End{Kind: EndGivenBack}
			return context.Cause(ctx)
		}
		var names []string
		for _, s := range todo[n:] {
			names = append(names, s.Name)
		}
		text := clean(fmt.Sprintf("durable: half undone: step %s: %s; not undone: %s", s.Name, guard.Text(err), strings.Join(names, ", ")))
		f.decided = &End{Kind: EndRetry, After: f.of.policy.pause(attempts, err, rand.Float64()), Err: text}
		switch {
		case undone: // the store has not taken that: no attempt of Compensate counts
			f.decided.Kind = EndSnoozed
		case isPermanent(err) || attempts >= undoAttempts:
			f.decided = &End{Kind: EndHalfUndone, Err: text}
		}
		return err
	}
	f.decided = &End{Kind: stateKind[f.journal.Undo], Err: f.journal.Reason}
	return errors.New(f.journal.Reason)
}

// end adds to the end of a claim what the flow has to say.
func (f *Flow) end(e End) (_ End, strays []string) {
	if f == nil {
		return e, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.dead = errors.New("durable: the body has returned"); {
	case f.decided != nil:
		e = *f.decided
	case f.park != nil:
		e = End{Kind: EndParked, Park: *f.park}
	}
	if e.Kind == EndDone {
		if strays = f.strays(); !f.kept { // a flow of one step costs no more than an item
			return e, strays
		}
	}
	e.Steps, e.Version, f.pending = f.pending, f.journal.Version, nil // a step that outlives the body does not touch them
	return e, strays
}
