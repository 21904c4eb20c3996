package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// hostile panics in each of its methods.
type hostile struct{}

func (hostile) Error() string                { panic("Error") }
func (hostile) Is(error) bool                { panic("Is") }
func (hostile) As(any) bool                  { panic("As") }
func (hostile) Unwrap() error                { panic("Unwrap") }
func (hostile) String() string               { panic("String") }
func (hostile) MarshalJSON() ([]byte, error) { panic("MarshalJSON") }

var hostileErrors = []error{
	(*fs.PathError)(nil),
	hostile{},
	fmt.Errorf("wrapped: %w", hostile{}),
	errors.Join(errOnPurpose, hostile{}),
}

// The operation of an error whose methods panic ends like any other: with a timeout, in a group, in ForEach, with
// values that panic too, and as a cause.
func TestHostileErrors(t *testing.T) {
	for _, err := range hostileErrors {
		t.Run(fmt.Sprintf("%T", err), func(t *testing.T) {
			bubble(t, func(t *testing.T) { endsWith(t, err) })
		})
	}
}

func endsWith(t *testing.T, hostile error) {
	same := func(what string, got error) {
		t.Helper()
		coretest.Check(t, got != nil, "%s: no error", what)
	}
	c := bodies(t, core.Options{MaxConcurrency: 2, Timeout: time.Second, StuckAfterCancel: time.Second})
	late := func(ctx context.Context) error { <-ctx.Done(); return hostile }
	same("timeout", c.Do(t.Context(), late))
	checkEqual(t, "failed", c.Stats().Failed, 1)

	for _, stops := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		g := c.Group(ctx, core.GroupOptions{StopOnError: stops})
		accepted(t)(g.Enqueue(t.Context(), late)) // first: a group that stops takes nothing more
		accepted(t)(g.Enqueue(t.Context(), func(context.Context) error { return hostile }))
		if !stops {
			cancel(hostile)
		}
		same("Wait", g.Wait())
		cancel(nil)
		same("ForEach", core.ForEach(t.Context(), slices.Values([]int{1, 2}), func(context.Context, int) error { return hostile }, core.Options{StopOnError: stops}))
		for range core.Map(t.Context(), slices.Values([]int{1, 2}), func(context.Context, int) (int, error) { return 0, hostile }, core.Options{StopOnError: stops}) {
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(hostile)
	same("ForEach of an ended context", core.ForEach(ctx, slices.Values([]int{1, 2}), func(context.Context, int) error { return nil }, core.Options{}))

	gate := newGate()
	stuck := enqueue(t, c, func(ctx context.Context) error { core.OperationFrom(ctx).Set("value", hostile); return gate.body(ctx) })
	time.Sleep(time.Millisecond)
	c.Cancel(stuck, hostile)
	time.Sleep(2 * time.Second)
	x, _ := c.Explain(stuck)
	checkSays(t, "Explain", x, "its body has not returned after the end of its context")
	s, _ := c.Lookup(stuck)
	_, err := json.Marshal(s)
	checkError(t, "MarshalJSON", err, nil)
	gate.open()
	checkError(t, "WaitIdle", c.WaitIdle(t.Context()), nil)
	for s := range c.Operations(core.OperationQuery{}) {
		text, err := json.Marshal(s)
		checkError(t, "MarshalJSON", err, nil)
		if s.Err != nil {
			checkSays(t, "JSON", string(text), `"error"`)
		}
		s.LogValue()
	}
	closeDown(t, c)
}

// The cause of a cancellation may ask the coordinator something when it is asked for its text.
func TestErrorAsksCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{StuckAfterCancel: time.Second})
		g := newGate()
		id := enqueue(t, c, g.body)
		time.Sleep(time.Millisecond)
		c.Cancel(id, asks{c})
		time.Sleep(2 * time.Second)
		x, _ := c.Explain(id)
		checkSays(t, "Explain", x, "(1 runs)")
		g.open()
		closeDown(t, c)
	})
}

type asks struct{ core.Inspector }

func (a asks) Error() string { return fmt.Sprint(a.Stats().Running, " runs") }
