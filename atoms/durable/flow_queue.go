package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Signal stores a signal for the flows of a key, and returns when it is on disk. The flow of the key that waits for its name takes it, or the
// next one that waits; flows take signals that came since their items were enqueued, each once. Payload is kept as JSON, at most Options.MaxResult
// long. With a uniqueID, a key gets a signal once, for as long as it is kept. If [MaxSignals] are kept for the key, the error is
// [core.ErrFull]: see [Keep] for how long they are. The queue need not run in this process.
//
//ephemeral:none
func (q *Queue[T]) Signal(ctx context.Context, key, name string, payload any, uniqueID ...string) error {
	return q.queue.send(ctx, key, 0, name, payload, uniqueID)
}

// SignalItem is [Queue.Signal] for the flow of one item, also if it has no key. If the queue has no such item, the error is [ErrUnknown].
//
//ephemeral:none
func (q *Queue[T]) SignalItem(ctx context.Context, id ItemID, name string, payload any, uniqueID ...string) error {
	return q.queue.send(ctx, "", id, name, payload, uniqueID)
}

func (q *queue) send(ctx context.Context, key string, id ItemID, name string, payload any, uniqueID []string) error {
	s, err := q.prepareSignal(key, id, name, payload, uniqueID...)
	if err != nil {
		return err
	}
	if inside(ctx, q.store) {
		return q.fail("signal, inside a transaction that this would wait for", core.ErrWouldDeadlock)
	}
	done, err := q.store.Signal(ctx, q.opts.Name, []Signal{s})
	if err == nil && done[0].Woken {
		q.wake(true)
	}
	return q.fail(fmt.Sprintf("send the signal %.80q", name), err)
}

// inside reports whether the caller is in a transaction that all other transactions of the store wait for.
func inside(ctx context.Context, store Store) bool {
	s, ok := store.(interface{ Inside(context.Context) bool })
	return ok && s.Inside(ctx)
}

// PrepareSignal returns the signal for a key, or for an item, as [Queue.Signal] would store it, for engines.
//
//ephemeral:none
func (q *Queue[T]) PrepareSignal(key string, id ItemID, name string, payload any, uniqueID ...string) (Signal, error) {
	return q.queue.prepareSignal(key, id, name, payload, uniqueID...)
}

func (q *queue) prepareSignal(key string, id ItemID, name string, payload any, uniqueID ...string) (Signal, error) {
	s := Signal{Key: key, Item: id, Name: name, UniqueID: strings.Join(uniqueID, "")}
	var err error
	panicked := guard.Do("MarshalJSON", func() { s.Data, err = json.Marshal(payload) })
	if err = cmp.Or(panicked, err); err != nil {
		err = fmt.Errorf("durable: its payload has no JSON: %w", err)
	}
	err = errors.Join(err, checkText("its key", key), checkText("its name", name), checkText("its unique id", s.UniqueID))
	switch {
	case err != nil:
	case len(uniqueID) > 1:
		err = fmt.Errorf("durable: it has %d unique ids, and may have one", len(uniqueID))
	case (key == "") == (id == 0):
		err = errors.New("durable: it needs a key or an item")
	case name == "" || strings.ContainsAny(name, ",*?! "):
		err = errors.New("durable: its name must be a name, and no pattern")
	case len(s.Data) > q.opts.MaxResult:
		err = fmt.Errorf("durable: its payload has %d bytes, more than %d: Options.MaxResult", len(s.Data), q.opts.MaxResult)
	}
	return s, q.fail(fmt.Sprintf("signal %.80q", name), err)
}

// Signals returns the signals that the store keeps for a key, also those that a flow has taken, in the order of their commits. It begins after the
// signal with the Seq after; 0 means with the first one. So the signals of a key are a stream of events. It ends after the first error.
//
//ephemeral:none
func (q *Queue[T]) Signals(ctx context.Context, key string, after int64) iter.Seq2[Signal, error] {
	return q.queue.signals(ctx, key, after)
}

func (q *queue) signals(ctx context.Context, key string, after int64) iter.Seq2[Signal, error] {
	return func(yield func(Signal, error) bool) {
		const page = 100
		for more := true; more; {
			some, err := q.store.Signals(ctx, q.opts.Name, key, after, page)
			if err != nil {
				yield(Signal{}, q.fail("read the signals of a key", err))
				return
			}
			for _, s := range some {
				if after = s.Seq; !yield(s, nil) {
					return
				}
			}
			more = len(some) == page
		}
	}
}

// History returns the flow of an item: its steps, with their results, and what it waits for. It is kept as long as the item. A flow that ended well
// before anything was recorded, such as one of a single step, has no steps, and Finish of an engine records none. If the queue has no such item, the error is [ErrUnknown].
func (q *Queue[T]) History(ctx context.Context, id ItemID) (Journal, error) {
	return q.queue.history(ctx, id, true)
}

func (q *queue) history(ctx context.Context, id ItemID, data bool) (Journal, error) {
	j, ok, err := q.store.Journal(ctx, q.opts.Name, id, data)
	if err == nil && !ok {
		err = ErrUnknown
	}
	return j, q.fail(fmt.Sprintf("read the steps of item %d", id), err)
}

var stepNames = []string{"none", "begun", "done", "undone"}

// String is the state in lower case.
func (s StepState) String() string { return stepNames[min(int(s), len(stepNames)-1)] }

type stepJSON struct {
	*step
	Data json.RawMessage `json:"data,omitempty"`
}

type step Step

// MarshalJSON has the Data, too.
func (s Step) MarshalJSON() ([]byte, error) {
	data := json.RawMessage(s.Data)
	if len(data) > 0 && !json.Valid(data) {
		data = nil
	}
	return json.Marshal(stepJSON{(*step)(&s), data})
}

// UnmarshalJSON reads what MarshalJSON has written.
func (s *Step) UnmarshalJSON(text []byte) error {
	from := stepJSON{step: (*step)(s)}
	err := json.Unmarshal(text, &from)
	s.Data = from.Data
	return err
}

// waits says what a parked flow waits for, since when and until when.
func (p Parked) waits() string {
	span := fmt.Sprintf("since %s until %s", moment(p.Since), moment(p.Until))
	if p.Pattern == "" {
		return "sleeps " + span
	}
	var names []string
	for name := range strings.SplitSeq(p.Pattern, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return fmt.Sprintf("waits for %s %s", strings.Join(names, " or "), span)
}

// shownSteps is how many names of steps a text has at most.
const shownSteps = 10

// steps says what is done, or is to be undone.
func (j *Journal) steps() string {
	var done []string
	what := "done"
	for _, s := range j.Steps {
		if j.Undo == 0 && s.State == StepDone || j.Undo != 0 && s.Compensates && s.State != StepUndone {
			done = append(done, s.Name)
		}
	}
	if j.Undo != 0 {
		what = "is undone (" + j.Reason + "), left"
	}
	if more := len(done) - shownSteps; more > 0 {
		done = append([]string{fmt.Sprint(more, " more")}, done[more:]...)
	}
	if len(done) == 0 {
		done = []string{"nothing"}
	}
	return what + ": " + strings.Join(done, ", ")
}
