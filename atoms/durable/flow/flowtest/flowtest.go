// Package flowtest checks a body against the history of a flow.
package flowtest

import (
	"context"
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Replay runs a body whose steps answer from a history, as [durable.Queue.History] returns it, or its JSON. It fails the test if the body asks for a step that the
// history has not, or does not ask for one that it has, and names it: so a change of a body can be tested with the flows that are under way. When the body has asked for all steps of the history, the next step returns
// [durable.ErrParked]. It returns the error of the body.
func Replay(t testing.TB, body func(ctx context.Context) error, history durable.Journal) error {
	t.Helper()
	ctx, end := durable.ReplayFlow(t.Context(), history)
	err := body(ctx)
	unknown, unused := end()
	for _, name := range unknown {
		t.Errorf("flowtest: the history has no step %q: the body would run it, or wait for it", name)
	}
	for _, name := range unused {
		t.Errorf("flowtest: the body did not ask for step %q of the history", name)
	}
	return err
}
