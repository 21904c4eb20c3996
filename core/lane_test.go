package core_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func lanes(_ testing.TB, spec string) []core.Lane { return core.Must(core.ParseLanes(spec)) }

// occupied makes a coordinator of one slot, which is taken until the gate is opened.
func occupied(t *testing.T, opts core.Options) (*core.Coordinator[coretest.Body], *gate) {
	t.Helper()
	opts.MaxConcurrency = 1
	c := bodies(t, opts)
	g := newGate()
	enqueue(t, c, g.body)
	synctest.Wait()
	return c, g
}

// The error names the lane and all there are, or the coordinator that has none.
func TestUnknownLane(t *testing.T) {
	bubble(t, func(t *testing.T) {
		laned, plain := bodies(t, core.Options{Lanes: lanes(t, "hot, cold")}), bodies(t, core.Options{Name: "plain"})
		for want, view := range map[string]*core.Coordinator[coretest.Body]{
			`"Hot" "hot" "cold"`: laned.Lane("Hot"), `"" "hot" "cold"`: laned.Lane(""), `"hot:4"`: laned.Lane("hot:4"),
			`"normal" plain`: plain.Lane("normal"), `"" plain`: plain.Lane(""),
		} {
			_, err := view.Enqueue(t.Context(), quick)
			_, tryErr := view.TryEnqueue(t.Context(), quick)
			for _, err := range []error{err, tryErr, view.Do(t.Context(), quick)} {
				checkError(t, want, err, core.ErrUnknownLane)
				checkSays(t, "error", err, strings.Fields(want)...)
			}
		}
		checkEqual(t, "rejected", laned.Stats().Rejected, 9)
		closeDown(t, plain)
		_, err := plain.Lane("x").TryEnqueue(t.Context(), quick)
		checkError(t, "TryEnqueue after Close", err, core.ErrClosed)
	})
}

// A lane is a view of its coordinator: all methods work through it; see TestLaneLifecycle.
func TestLaneIsAViewOfItsCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, g := occupied(t, core.Options{Lanes: lanes(t, "hot, normal"), Name: "views"})
		hot := c.Lane("hot")
		id := enqueue(t, hot, raise("said"))
		checkSlice(t, "operations of the lane", found(c, core.OperationQuery{Lane: "hot"}), []core.OperationID{id})
		checkEqual(t, "name", hot.Name(), "views")
		checkEqual(t, "the sink of the view", hot.Sink(), c.Sink())
		if _, ok := hot.Pin(id); !ok {
			t.Error("Pin by the view: got false")
		}
		finalized := 0
		hot.OnFinalized(func(core.Snapshot) { finalized++ })
		g.open()
		checkError(t, "Wait", hot.Wait(t.Context(), id), nil)
		checkEqual(t, "said", hot.Has("said"), true)
		enqueue(t, hot.Lane("normal"), quick) // a view of a view
		closeDown(t, c)
		checkEqual(t, "finalized", finalized, 3)
	})
}

// The lanes that were given are copied, and so are those in Stats.
func TestLanesAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		given := []core.Lane{{Name: "hot", Limit: 3}, {Name: "normal", Depth: 7}}
		c, g := occupied(t, core.Options{Lanes: given, MaxQueued: 5})
		checkSlice(t, "the lanes that were given", given, []core.Lane{{Name: "hot", Limit: 3}, {Name: "normal", Depth: 7}})
		given[0].Name = "other"
		enqueue(t, c.Lane("hot"), quick)
		before := c.Stats()
		g.open()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		c.Stats()
		want := []core.LaneStats{{Name: "hot", Pending: 1, Limit: 3, Depth: 5}, {Name: "normal", Running: 1, Depth: 7}}
		checkSlice(t, "lanes, as they were", before.Lanes, want)
	})
}

// While all pending items are deferred, or their keys or lanes are busy, there is no goroutine but those of the
// bodies. The bubble would report another.
func TestNoGoroutineWhileNothingCanStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := keyedBodies(t, core.Options{MaxConcurrency: 8, MaxDefer: -1, Lanes: []core.Lane{{Name: "a", DeferOn: "busy"}, {Name: "b", DeferOn: "busy"}}})
		c.Sink().Hold("busy", "", 0)
		for i := range 100 {
			enqueue(t, c.Lane([]string{"a", "b"}[i%2]), keyedBody{fmt.Sprint(i % 5), quick})
		}
		synctest.Wait()
		checkEqual(t, "pending", c.Stats().Pending, 100)
	})
}

// Without ageing, priority is strict. By default an item ages after ten seconds.
func TestAgeingDefaultAndNone(t *testing.T) {
	for ageing, want := range map[time.Duration]time.Duration{0: 10 * time.Second, -1: 100 * time.Second} {
		bubble(t, func(t *testing.T) {
			begun, c := time.Now(), bodies(t, core.Options{MaxConcurrency: 1, Ageing: ageing, Lanes: lanes(t, "hot, slow")})
			var busy coretest.Body // keeps its lane busy: each item enqueues the next one
			busy = func(context.Context) error {
				if time.Since(begun) < 98*time.Second {
					enqueue(t, c.Lane("hot"), busy)
				}
				time.Sleep(time.Second)
				return nil
			}
			enqueue(t, c.Lane("hot"), busy)
			enqueue(t, c.Lane("hot"), busy)
			checkError(t, "Do", c.Lane("slow").Do(t.Context(), func(context.Context) error {
				checkEqual(t, fmt.Sprint("waited with Ageing ", ageing), time.Since(begun), want)
				return nil
			}), nil)
			checkError(t, "WaitIdle", c.WaitIdle(t.Context()), nil)
		})
	}
}

func TestParseLanes(t *testing.T) {
	for spec, want := range map[string][]core.Lane{
		"hot":                          {{Name: "hot"}},
		"hot:4, normal, slow:2":        {{Name: "hot", Limit: 4}, {Name: "normal"}, {Name: "slow", Limit: 2}},
		" hot : 4 ,\n\tnormal\u00a0":   {{Name: "hot", Limit: 4}, {Name: "normal"}},
		"a b:007":                      {{Name: "a b", Limit: 7}},
		"größe:+1":                     {{Name: "größe", Limit: 1}},
		"Hot,hot":                      {{Name: "Hot"}, {Name: "hot"}},
		"a" + strings.Repeat(" ", 1e5): {{Name: "a"}},
	} {
		got, err := core.ParseLanes(spec)
		checkError(t, fmt.Sprintf("ParseLanes(%.40q)", spec), err, nil)
		checkSlice(t, fmt.Sprintf("ParseLanes(%.40q)", spec), got, want)
	}
	var most []string
	for i := range 64 {
		most = append(most, fmt.Sprint("lane ", i))
	}
	if got, err := core.ParseLanes(strings.Join(most, ",")); err != nil || len(got) != 64 {
		t.Errorf("64 lanes: got %d and error %v", len(got), err)
	}
	for spec, want := range map[string][]string{
		"":                           {"lane 1", `name ""`, "blank"},
		"hot,,slow":                  {"lane 2", "blank"},
		",":                          {"lane 1", "lane 2", "blank"},
		":3":                         {"lane 1", "blank"},
		"hot:":                       {"lane 1", `limit ""`, "number from 1"},
		"hot:0":                      {`limit "0"`, "number from 1"},
		"a, hot:-1":                  {"lane 2", `limit "-1"`, "number from 1"},
		"hot:x":                      {`limit "x"`},
		"hot:1.5":                    {`limit "1.5"`},
		"hot:4:4":                    {`limit "4:4"`},
		"hot:99999999999999999999":   {`limit "99999999999999999999"`},
		"hot:4,hot:4":                {"lane 2", `"hot"`, "lane 1 already"},
		"x:0, ,x":                    {"lane 1", `limit "0"`, "lane 2", "blank", "lane 3", "lane 1 already"}, // all at once
		strings.Repeat("a,", 64):     {"65 entries", "64"},
		strings.Repeat(",", 100_000): {"100001 entries", "64"},
	} {
		got, err := core.ParseLanes(spec)
		if err == nil || got != nil {
			t.Errorf("ParseLanes(%.40q): got %+v and error %v, want just an error", spec, got, err)
			continue
		}
		checkSays(t, fmt.Sprintf("ParseLanes(%.40q)", spec), err, append(want, "core: ", strconv.Quote(spec))...)
		if lines := strings.Count(err.Error(), "\n"); lines > 2 {
			t.Errorf("ParseLanes(%.40q): got %d errors, want each thing said once", spec, lines+1)
		}
	}
}

func FuzzParseLanes(f *testing.F) {
	for _, seed := range []string{
		"", "hot", "hot:4, normal, slow:2", " a : 1 ,b", "a:0", "a:-1", "a:+1", "a:1:2", ":", ",", "a,a",
		"a:99999999999999999999", "\xff:3", "a\n:7", "\u00a0a\u00a0:\u20031", strings.Repeat("a,", 70), "é, è", "a:٣",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		got, err := core.ParseLanes(spec)
		if err != nil {
			coretest.Check(t, got == nil, "ParseLanes(%q): got lanes and error %v", spec, err)
			each := []error{err}
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				each = joined.Unwrap()
			}
			for _, err := range each {
				checkSays(t, "error", err, "core: ", strconv.Quote(spec))
			}
			return
		}
		var again []string
		for _, l := range got {
			checkEqual(t, "lane, of which only two fields are set", l, core.Lane{Name: l.Name, Limit: max(0, l.Limit)})
			checkEqual(t, "name without blanks", l.Name, strings.TrimSpace(l.Name))
			coretest.Check(t, l.Name != "", "ParseLanes(%q): got a lane without a name", spec)
			text := l.Name
			if l.Limit > 0 {
				text += ":" + strconv.Itoa(l.Limit)
			}
			again = append(again, text)
		}
		if same, err := core.ParseLanes(strings.Join(again, ",")); err != nil || !slices.Equal(same, got) {
			t.Errorf("ParseLanes(%q): got %+v, which comes back as %+v with error %v", spec, got, same, err)
		}
		// And a coordinator takes them.
		if _, err := core.NewCoordinator(coretest.Run, core.Options{Lanes: got}); err != nil {
			t.Errorf("ParseLanes(%q): a coordinator does not take that: %v", spec, err)
		}
	})
}

// A class is a view, like a lane. Both can be combined in either order.
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
		checkEqual(t, "found", len(found(c, core.OperationQuery{Class: "a", Lane: "hot"})), 2)
		_, err := c.Lane("hot").Class("A").TryEnqueue(t.Context(), quick)
		checkError(t, "TryEnqueue", err, core.ErrUnknownClass)
		checkSays(t, "TryEnqueue", err, `"A" is none of ["a" "b"]`)
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

// An item behind another one of its key says so, and a body that waits for room for its class.
func TestExplainClass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		keyed := keyedBodies(t, core.Options{MaxConcurrency: 9, Classes: []core.Class{{Name: "big", Limit: 1}}})
		for _, key := range []string{"", "ann"} {
			enqueue(t, keyed.Class("big"), keyedBody{key, g.body})
		}
		checkExplained(t, keyed, enqueue(t, keyed, keyedBody{"ann", quick}), "operation # is pending: 1 item before it goes first")
		full := bodies(t, core.Options{Name: "mails", Lanes: lanes(t, "normal"), Classes: []core.Class{{Name: "big", Limit: 1, Depth: -1}}})
		enqueue(t, full.Class("big"), g.body)
		other := bodies(t, core.Options{})
		room := enqueue(t, other, do(full.Class("big"), quick))
		checkExplained(t, other, room, `operation # is running: its body waits for room for class "big" in lane "normal" of "mails"`)
		g.open()
	})
}
