package core_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A body can say what it waits for.
func TestExplainWhatABodyWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{Name: "orders", MaxConcurrency: 1}))
		go1, end := make(chan struct{}), make(chan struct{})
		id := enqueue(t, c, func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			until := time.Now().Add(time.Minute)
			answered := op.WaitsFor("an answer", time.Time{})
			granted := op.WaitsFor("a token of limiter api", until)
			<-go1
			answered()
			answered()
			<-go1
			granted()
			<-end
			return nil
		})
		next := enqueue(t, c, func(context.Context) error { return nil })
		time.Sleep(time.Second)
		const token = "its body waits for a token of limiter api, for 1s, for 59s more at most"
		checkExplained(t, c, id, "operation # is running: its body waits for an answer, for 1s; "+token)
		if got := explain(t, c, next); !strings.HasSuffix(got, token) {
			t.Errorf("an operation that waits for it gets %q", got)
		}
		go1 <- struct{}{}
		checkExplained(t, c, id, "operation # is running: "+token)
		x, _ := c.Explain(id)
		text, err := json.Marshal(x.Reasons[0])
		if err != nil || !strings.Contains(string(text), `"kind":"body"`) || !strings.Contains(string(text), `"what":"a token of limiter api"`) {
			t.Errorf("in JSON it is %s, %v", text, err)
		}
		go1 <- struct{}{}
		checkExplained(t, c, id, "operation # is running")
		close(end)
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		checkExplained(t, c, id, "operation # has succeeded")
	})
}

// WaitsFor has no effect outside of an operation, and after the operation has left.
func TestWaitsForWithoutAnOperation(t *testing.T) {
	core.OperationFrom(t.Context()).WaitsFor("nothing", time.Time{})()
	bubble(t, func(t *testing.T) {
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxTracked: -1}))
		var op *core.Operation
		var done func()
		err := c.Do(t.Context(), func(ctx context.Context) error {
			op = core.OperationFrom(ctx)
			done = op.WaitsFor("the end", time.Time{})
			return nil
		})
		coretest.Check(t, err == nil, "%v", err)
		done()
		op.WaitsFor("more", time.Time{})()
	})
}
