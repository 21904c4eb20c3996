package flow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Errors of calls in a flow. Compare them with errors.Is. The body returns them.
var (
	// ErrParked means that the flow goes on later: the body begins again then. Each later call in this run returns it too, and whatever the body
	// returns, the item is parked.
	ErrParked = durable.ErrParked
	// ErrUndoing means that the flow is undone, and this step has no result.
	ErrUndoing = durable.ErrUndoing
	// ErrLate means that no signal came before the deadline of [Await]. It is permanent: if the body returns it, the flow is undone.
	ErrLate = durable.ErrLate
)

// A Step is a part of a flow that runs once.
type Step[R any] struct {
	// Name is how the store remembers the step. A flow has each name once. It may have 512 bytes.
	Name string
	// Class is the name of a class of the queue; "" means the class of the item. The step waits for the limit and the rate of its class, over all
	// processes: the item goes back, and is claimed again with that class. Each claim with the class takes a token, and the Cost of the item. A step with a class runs alone: its flow has no other one at
	// that time.
	Class string
	// Do does the work. Its result is kept as JSON, with at most Options.MaxResult bytes. If it returns an error, the step is not done: return the error.
	Do func(ctx context.Context) (R, error)
	// Compensate undoes the step when the flow is dead or cancelled; nil means that there is nothing to undo. Known says that Do has returned a
	// result. Otherwise Do has returned an error, or its process has died: it is not known whether Do took effect, and the result is the zero R.
	// So the Compensate of the step that failed is called as well, and it first asks the service whether there is something to undo. Compensate is called at least once, so it is
	// idempotent. It is tried up to 8 times; a permanent error ends that at once. Then the flow is half undone.
	Compensate func(ctx context.Context, result R, known bool) error
}

// Do runs a step, and returns its result. If the step was done in an earlier run of the body, Do returns the result that it had. Ctx is the context of
// the body, or derived from it. Return its error from the body. Permanent errors are: a name that is used twice, a result that is too large or cannot be
// decoded as R, too many steps (Options.MaxSteps, Options.MaxFlow), and a step with a class beside others.
func Do[R any](ctx context.Context, step Step[R]) (result R, err error) {
	return do(ctx, step, 0)
}

func do[R any](ctx context.Context, step Step[R], at uintptr) (result R, err error) {
	if step.Do == nil {
		return result, durable.Permanent(fmt.Errorf("flow: step %.80q has no Do", step.Name))
	}
	if at == 0 {
		at = caller()
	}
	ran := false
	call := durable.Call{Name: step.Name, Class: step.Class, At: at, Do: func(ctx context.Context) ([]byte, error) {
		var err error
		if result, err = step.Do(ctx); err != nil {
			return nil, err
		}
		ran = true
		var data []byte
		panicked := guard.Do("MarshalJSON", func() { data, err = json.Marshal(result) })
		if err = cmp.Or(panicked, err); err != nil {
			err = durable.Permanent(fmt.Errorf("flow: the result of step %.80q, a %T, has no JSON: %w", step.Name, result, err))
		}
		return data, err
	}}
	if step.Compensate != nil {
		call.Undo = func(ctx context.Context, data []byte, known bool) error {
			var result R
			if known {
				if err := decode(step.Name, data, &result); err != nil {
					return err
				}
			}
			return step.Compensate(ctx, result, known)
		}
	}
	data, err := durable.FlowFrom(ctx).Do(ctx, call)
	if err == nil && !ran {
		err = decode(step.Name, data, &result)
	}
	if err != nil {
		result = *new(R)
	}
	return result, err
}

// caller is where a function of this package was called.
func caller() uintptr {
	var pcs [1]uintptr
	runtime.Callers(4, pcs[:])
	return pcs[0]
}

// decode reads what was kept of a step.
func decode(name string, data []byte, to any) error {
	var err error
	panicked := guard.Do("UnmarshalJSON", func() { err = json.Unmarshal(data, to) })
	if err = cmp.Or(panicked, err); err != nil {
		return durable.Permanent(fmt.Errorf("flow: what is kept of step %.80q cannot be decoded as %T: %w", name, to, err))
	}
	return nil
}

// Said is the signal that ended an [Await].
type Said struct {
	Name    string
	Payload json.RawMessage
}

// Decode reads the payload.
func (s Said) Decode(to any) error { return decode(s.Name, s.Payload, to) }

// Await returns the first signal whose name matches pattern ([signals.Match]) and that was sent to the key of the item, or to the item, since it was enqueued:
// see [durable.Queue.Signal]. Each signal is taken once. If there is none, the flow is parked: the error is [ErrParked], and the body begins again when there is
// one, or d after the first call; then the error is [ErrLate]. A parked flow is a row in the store. It keeps its key: later items of the key wait.
//
//ephemeral:none
func Await(ctx context.Context, name, pattern string, d time.Duration) (Said, error) {
	if pattern == "" {
		return Said{}, durable.Permanent(fmt.Errorf("flow: step %.80q: Await needs a pattern of signals", name))
	}
	s, err := durable.FlowFrom(ctx).Await(name, pattern, d)
	return Said{s.Signal, s.Data}, err
}

// Sleep parks the flow until d after the first call. The error is [ErrParked] until then.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	_, err := durable.FlowFrom(ctx).Await(name, "", d)
	return err
}

// Version is the Options.Version of the program in which the flow of ctx began. A program with a lower version gives the flow back.
func Version(ctx context.Context) int { return durable.FlowFrom(ctx).Version() }

// kept is the record of a step of [Each].
type kept[R any] struct {
	Of     string `json:"of"` // hash of the element
	Result R      `json:"result"`
}

// Each runs a step for each element, name/0 and so on, at most limit of them beside each other, in this process. It returns the results in the order of the elements.
// The elements must be the same in each run of the body: another element at a place is a permanent error. After an error, the context of the others ends, and Each returns the
// error when they have ended. Limit 0 means 1.
func Each[E, R any](ctx context.Context, name string, elements []E, limit int, do func(ctx context.Context, element E) (R, error)) ([]R, error) {
	at := callerOfEach()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]R, len(elements))
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		next  int
		ended int // with a result
		first error
	)
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if first != nil || next == len(elements) {
			return -1
		}
		next++
		return next - 1
	}
	for range min(max(1, limit), len(elements)) {
		all.Go(func() {
			for n := take(); n >= 0; n = take() {
				var err error
				panicked := guard.Do("the function of flow.Each", func() {
					results[n], err = each(ctx, fmt.Sprintf("%s/%d", name, n), elements[n], do, at)
				})
				mu.Lock()
				if err = cmp.Or(panicked, err); err == nil {
					ended++
				}
				first = cmp.Or(first, err)
				mu.Unlock()
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	if first == nil && ended < len(elements) {
		first = fmt.Errorf("flow: steps %.80q: %d of %d elements have no result: runtime.Goexit was called", name, len(elements)-ended, len(elements))
	}
	if first != nil {
		return nil, first
	}
	return results, nil
}

func each[E, R any](ctx context.Context, name string, element E, fn func(ctx context.Context, element E) (R, error), at uintptr) (result R, err error) {
	var text []byte
	panicked := guard.Do("MarshalJSON", func() { text, err = json.Marshal(element) })
	if err = cmp.Or(panicked, err); err != nil {
		return result, durable.Permanent(fmt.Errorf("flow: the element of step %.80q has no JSON: %w", name, err))
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:8])
	k, err := do(ctx, Step[kept[R]]{Name: name, Do: func(ctx context.Context) (kept[R], error) {
		result, err := fn(ctx, element)
		return kept[R]{hash, result}, err
	}}, at)
	if err == nil && k.Of != hash {
		err = durable.Permanent(fmt.Errorf("flow: step %.80q: %w", name, errors.New("it was done for another element: the elements must be the same in each run")))
	}
	return k.Result, err
}

func callerOfEach() uintptr {
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:])
	return pcs[0]
}
