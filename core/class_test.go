package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A class is a view, as a lane is, and both go together in either order.
func TestClassIsAViewOfItsCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		opts := core.Options{Name: "orders", MaxConcurrency: 9, Lanes: lanes(t, "hot, normal"), Classes: []core.Class{{Name: "a", Limit: 1}, {Name: "b", Limit: 0}}}
		c, g := bodies(t, opts), newGate()
		for _, view := range []*core.Coordinator[coretest.Body]{c.Class("a").Lane("hot"), c.Lane("hot").Class("a"), c.Class("b").Class("a"), c.Class("b"), c} {
			enqueue(t, view, g.body)
		}
		synctest.Wait()
		checkSlice(t, "classes", c.Stats().Classes, []core.ClassStats{{Name: "a", Pending: 2, Running: 1, Limit: 1}, {Name: "b", Running: 1}})
		var places []string
		for s := range c.Operations(core.OperationQuery{}) {
			places = append(places, s.Lane+"/"+s.Class)
		}
		checkSlice(t, "places", places, []string{"hot/a", "hot/a", "normal/a", "normal/b", "normal/"})
		n := 0
		for range c.Operations(core.OperationQuery{Class: "a", Lane: "hot"}) {
			n++
		}
		checkEqual(t, "found", n, 2)
		_, err := c.Lane("hot").Class("A").TryEnqueue(t.Context(), quick)
		checkError(t, "TryEnqueue", err, core.ErrUnknownClass)
		coretest.Check(t, err == nil || strings.Contains(err.Error(), `"A" is none of ["a" "b"]`), "got error %q, want it to name the class and all there are", err)
		_, err = c.Class("A").Lane("hot").Enqueue(t.Context(), quick)
		checkError(t, "Enqueue", err, core.ErrUnknownClass)
		checkError(t, "Do", c.Class("").Do(t.Context(), quick), core.ErrUnknownClass)
		checkEqual(t, "rejected", c.Stats().Rejected, 3)

		results := core.Must(core.NewResultCoordinator(func(_ context.Context, n int) (string, error) { return fmt.Sprint(n), nil }, opts))
		text, err := results.Lane("hot").Class("b").Do(t.Context(), 7)
		checkError(t, "Do", err, nil)
		checkEqual(t, "result", text, "7")
		_, err = results.Class("c").Lane("hot").Do(t.Context(), 7)
		checkError(t, "Do", err, core.ErrUnknownClass)
		g.open()
	})
}

// An item that waits for its class says so, and which operation has the slot.
func TestExplainClass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := bodies(t, core.Options{MaxConcurrency: 9, Classes: []core.Class{{Name: "big", Limit: 2}}}), newGate()
		first := enqueue(t, c.Class("big"), g.body)
		enqueue(t, c.Class("big"), g.body)
		next := enqueue(t, c.Class("big"), quick)
		checkExplained(t, c, next, `operation # is pending: all 2 slots of class "big" are taken, the longest by operation %d, for 0s`, first)
		full := bodies(t, core.Options{Name: "mails", Lanes: lanes(t, "normal"), Classes: []core.Class{{Name: "big", Limit: 1, Depth: -1}}})
		enqueue(t, full.Class("big"), g.body)
		room := enqueue(t, c, do(full.Class("big"), quick))
		checkExplained(t, c, room, `operation # is running: its body waits for room for class "big" in lane "normal" of "mails"`)
		g.open()
	})
}

func TestClassOptionsRefused(t *testing.T) {
	for want, classes := range map[string][]core.Class{
		`class 1 of Options.Classes: name " " is blank`:                   {{Name: " "}},
		`class 2 of Options.Classes: name "a" is that of class 1 already`: {{Name: "a"}, {Name: "a"}},
		`class 1 of Options.Classes: limit is -1`:                         {{Name: "a", Limit: -1}},
		`Options.Classes has 65 entries, but there can be 64`:             make([]core.Class, 65),
	} {
		_, err := core.NewCoordinator(coretest.Run, core.Options{Classes: classes})
		coretest.Check(t, err != nil && strings.Contains(err.Error(), want), "%.60v: got error %v, want it to contain %q", classes, err, want)
	}
	if err := core.ForEach(t.Context(), upTo(1), func(context.Context, int) error { return nil }, core.Options{Classes: []core.Class{{Name: "a"}}}); err == nil {
		t.Error("ForEach with classes: got no error")
	}
}
