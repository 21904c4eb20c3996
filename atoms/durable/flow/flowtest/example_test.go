package flowtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow/flowtest"
)

// printer takes the place of the *testing.T of a test, so that the example can print what a test would report.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Context() context.Context          { return context.Background() }
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// The history of a flow that is under way is kept with the tests. A new body must fit it: here a step has got another name.
func Example() {
	const text = `{"steps": [{"name": "reserve", "seq": 1, "state": 2, "data": "shelf 7"}, {"name": "charge", "seq": 2, "state": 2, "data": 4711}]}`
	var history durable.Journal // json.Marshal of what Queue.History returns
	if err := json.Unmarshal([]byte(text), &history); err != nil {
		panic(err)
	}
	body := func(pay string) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			shelf, err := flow.Do(ctx, flow.Step[string]{Name: "reserve", Do: func(context.Context) (string, error) { panic("it runs") }})
			if err != nil {
				return err
			}
			receipt, err := flow.Do(ctx, flow.Step[int]{Name: pay, Do: func(context.Context) (int, error) { panic("it runs") }})
			if err != nil {
				return err
			}
			fmt.Println(shelf, receipt)
			return nil
		}
	}

	t := printer{}
	fmt.Println(flowtest.Replay(t, body("charge"), history))
	if err := flowtest.Replay(t, body("pay"), history); err != nil {
		fmt.Println("it does not fit")
	}
	// Output:
	// shelf 7 4711
	// <nil>
	// flowtest: the history has no step "pay": the body would run it, or wait for it
	// flowtest: the body did not ask for step "charge" of the history
	// it does not fit
}
