package core

import (
	"context"
	"testing"
	"testing/synctest"
)

// Whether there would be room is asked between an arrival that takes the last place
// and its collection by a worker: it counts nevertheless, or a wait that can never end
// would be let begin.
func TestNestedArrivalTakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Must(NewKeyedCoordinator(func(key string) string { return key },
			func(ctx context.Context, _ string) error { <-ctx.Done(); return nil },
			Options{MaxConcurrency: 2, MaxQueued: 1}))
		defer c.Close()
		if _, err := c.Enqueue(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		e := c.engine
		e.mu.Lock()
		stuck := waiting{e.running.head: {}}
		e.nested++
		arrival := func() *Operation { return &Operation{engine: e, key: "a", body: e.running.head.body} }
		e.intake.mu.Lock()
		e.intake.accept(arrival())
		w := e.intake.queue(arrival())
		e.intake.mu.Unlock()
		in := stuck.letIn(w)
		e.nested--
		e.mu.Unlock()
		if in {
			t.Error("a queue that is full of one key would have room, although that key's operation never ends")
		}
	})
}
