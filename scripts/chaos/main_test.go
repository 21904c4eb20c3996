//go:build unix

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// good is the history of two items of a key, which is paused and resumed, and of two flows. The lease of the second item was lost once. The first
// flow waits for a signal, and the second one fails.
func good() *history {
	h := &history{limits: limitsOf(6), items: map[int64]item{
		1: {ID: 1, Key: "ada", Lane: "hot", State: durable.Done, Token: 1, job: job{Ref: "r1", Tx: true}},
		2: {ID: 2, Key: "ada", Lane: "hot", State: durable.Done, Token: 3, job: job{Ref: "r2"}},
		3: {ID: 3, State: durable.Done, Token: 5, job: job{Ref: "f3", Trip: &trip{Undo: true, Tx: true, Await: time.Second}}},
		4: {ID: 4, State: durable.Dead, Token: 7, job: job{Ref: "f4", Trip: &trip{Undo: true, Fails: true}}},
	}, placed: map[string]bool{}}
	change := func(tx uint64, item int64, old, state durable.State, oldToken, token int64) {
		h.changes = append(h.changes, change{int64(len(h.changes) + 1), tx, "w", item, old, state, oldToken, token, false, 0})
	}
	change(1, 1, 0, durable.Ready, 0, 0)
	change(2, 2, 0, durable.Blocked, 0, 0)
	change(3, 1, durable.Ready, durable.Running, 0, 1)
	change(4, 1, durable.Running, durable.Done, 1, 1)
	change(4, 2, durable.Blocked, durable.Running, 0, 2)
	change(5, 2, durable.Running, durable.Ready, 2, 0)
	change(6, 2, durable.Ready, durable.Running, 0, 3)
	change(7, 2, durable.Running, durable.Done, 3, 3)
	for id := int64(3); id < 5; id++ {
		first, second := 2*id-2, 2*id-1
		change(8, id, 0, durable.Ready, 0, 0)
		change(9, id, durable.Ready, durable.Running, 0, first)
		change(10, id, durable.Running, durable.Ready, first, first) // it waits, or is to be undone
		change(11, id, durable.Ready, durable.Running, first, second)
		change(12, id, durable.Running, h.items[id].State, second, second)
	}
	h.changes[6].Started = 6000 // when the key is resumed
	h.effects = []effect{{1, 1}, {2, 2}, {2, 3}, {3, 5}}
	h.inside = []effect{{3, 4}}
	h.sent = []sent{{Item: 3, At: 50, Taken: 3, Unique: "s1"}}
	h.steps = []step{{Item: 3, Name: awaits, Signal: answered, Data: `"s1"`, State: durable.StepDone, Enqueued: 1, Until: 100},
		{Item: 4, Name: "first", State: durable.StepUndone, Compensates: true}}
	at := int64(0)
	by := func(n int64, e event) event {
		at++
		e.Worker, e.Call, e.At = "w", n, at
		return e
	}
	var events []event
	for n, e := range []event{{Op: "enqueue", Ref: "r1", Item: 1}, {Op: "enqueue", Ref: "r2", Item: 2},
		{Op: "effect", Item: 1, Token: 1}, {Op: "effect", Item: 2, Token: 2}, {Op: "effect", Item: 2, Token: 3},
		{Op: "step", Ref: "first", Item: 3, Token: 4}, {Op: "step", Ref: "second", Item: 3, Token: 4}, {Op: "signal", Unique: "s1", Item: 3},
		{Op: "step", Ref: "third", Item: 3, Token: 5}, {Op: "step", Ref: "last", Item: 3, Token: 5},
		{Op: "step", Ref: "first", Item: 4, Token: 6}, {Op: "step", Ref: "second", Item: 4, Token: 6},
		{Op: "undo", Ref: "second", Item: 4, Token: 7, Of: 6}, {Op: "undo", Ref: "first", Item: 4, Token: 7, Of: 6}} {
		begin := e
		if e.Op == "enqueue" {
			begin.Item = 0
		}
		e.Out = "ok"
		events = append(events, by(int64(n+1), begin), by(int64(n+1), e))
	}
	for _, e := range []event{{Op: "start", Item: 1, Token: 1, Tries: 1}, {Op: "stop", Item: 1, Token: 1}, {Op: "start", Item: 2, Token: 2, Tries: 1}, {Op: "start", Item: 2, Token: 3, Tries: 2},
		{Op: "told", Out: "durable.succeeded", Item: 1, Token: 1}, {Op: "told", Out: "durable.fenced", Item: 2, Token: 2}, {Op: "told", Out: "durable.succeeded", Item: 2, Token: 3}} {
		events = append(events, by(0, e))
	}
	h.read(events)
	h.calls = append(h.calls, call{event: event{Op: "took", Unique: "s1", Item: 3, Token: 5, At: 20}},
		call{event{Op: "pause", Skip: "ada", Of: 9000, Out: "ok", At: 1e6}, 2e6}, call{event{Op: "resume", Skip: "ada", Out: "ok", At: 6e6}, 7e6})
	return h
}

// call is the call of an item; ref is that of a step.
func (h *history) call(op string, item int64, ref string) *call {
	return &h.calls[slices.IndexFunc(h.calls, func(c call) bool { return c.Op == op && c.Item == item && c.Ref == ref })]
}

// Each promise, when it is broken, is found and named.
func TestChecks(t *testing.T) {
	for promise, breaks := range map[string]func(h *history){
		"":                   func(*history) {},
		"B1 no item is lost": func(h *history) { h.calls[0].Item = 7 },
		"B1 once":            func(h *history) { i := h.items[2]; i.job.Ref = "r1"; h.items[2] = i },
		"B1 unique": func(h *history) {
			for id, i := range h.items {
				i.Unique = "u"
				h.items[id] = i
			}
		},
		"B1 refused": func(h *history) { h.calls[0].Out = "no" },
		"B1 transaction": func(h *history) {
			h.placed["r3"] = true
			h.calls = append(h.calls, call{event: event{Op: "enqueue", Ref: "r3", Out: "no"}})
		},
		"B1 every item ends":         func(h *history) { i := h.items[2]; i.State = durable.Retry; h.items[2] = i },
		"B2 order of a key: key and": func(h *history) { h.calls[2].At, h.calls[2].To = 50, 51 },
		"B2 order of a key: change": func(h *history) {
			h.items[0] = item{ID: 0, Key: "ada", Lane: "hot", State: durable.Done, job: job{Ref: "r0"}}
			h.changes = append([]change{{Item: 0, State: durable.Blocked}}, h.changes...)
		},
		"states":          func(h *history) { h.changes[2].Old = durable.Retry },
		"B3 one claim of": func(h *history) { h.changes[1].State = durable.Ready },
		"B3 one body":     func(h *history) { h.bodies[2].Token = 1 },
		"B4 limits":       func(h *history) { h.tooMany() },
		"rates": func(h *history) {
			h.items[9] = item{ID: 9, Class: className, State: durable.Done, job: job{Ref: "r9"}}
			for range classOf(6).Rate.Burst + 1 {
				h.changes = append(h.changes, change{Item: 9, State: durable.Running, Started: 1})
			}
		},
		"costs": func(h *history) {
			h.items[9] = item{ID: 9, Class: className, Cost: 6, State: durable.Done, job: job{Ref: "r9"}}
			h.changes = append(h.changes, change{Item: 9, State: durable.Running, Started: 1}, change{Item: 9, State: durable.Running, Started: 1})
		},
		"rates of keys": func(h *history) {
			h.items[9] = item{ID: 9, Key: "z", State: durable.Done, job: job{Ref: "r9"}}
			for range keyRate(6).Burst + 1 {
				h.changes = append(h.changes, change{Item: 9, State: durable.Running, Started: 1})
			}
		},
		"B4 limits: change 0 of item 9": func(h *history) {
			h.items[9] = item{ID: 9, Class: className, State: durable.Done, job: job{Ref: "r9"}}
			for range h.limits[className] + 1 {
				h.changes = append(h.changes, change{Item: 9, State: durable.Running})
			}
		},
		"B5 tokens rise":                                func(h *history) { h.changes[2].Token = 9 },
		"B5 late ends":                                  func(h *history) { h.tells[1].Out = "retried" },
		"B5 late ends are refused: worker o":            func(h *history) { h.changes[7].Worker = "other" },
		"B7 a node that lives":                          func(h *history) { h.changes[5].Live = true },
		"B7 a node that lives keeps its claims: worker": func(h *history) { h.overs = []over{{"w", "other", true}} },
		"B8 items that end processes":                   func(h *history) { h.tells[2].Losses = durable.LossesAlone },
		"B6 effects:":                                   func(h *history) { h.effects = h.effects[:2] },
		"B6 effects with":                               func(h *history) { h.effects = append(h.effects, effect{1, 1}) },
		"B8 attempts":                                   func(h *history) { h.bodies[0].Tries = maxAttempts + 1 },
		"B9 a cancelled item":                           func(h *history) { h.changes[2].Old, h.changes[0].State = durable.Cancelled, durable.Cancelled },
		"B11 no lost wake-up":                           func(h *history) { h.changes[4].State = durable.Blocked },
		"B13 what is paused does not start: change 7":   func(h *history) { h.changes[6].Started-- },
		"B13 what is paused does not start: change 5":   func(h *history) { h.call("pause", 0, "").Skip, h.changes[4].Started = "", 9999 },
		"B13 what is paused does not start: change 3": func(h *history) {
			i := h.items[1]
			i.Class = "c"
			h.items[1] = i
			*h.call("pause", 0, "") = call{event{Op: "pause", Ref: "c", Of: 9000, Out: "ok", At: 1e6}, 2e6}
			h.changes[2].Started = 2001
		},
		"F1 steps run once: item 3 has begun step first with token 5": func(h *history) {
			h.calls = append(h.calls, call{event: event{Op: "step", Ref: "first", Item: 3, Token: 5, At: 30}})
		},
		"F1 steps run once: item 3 has begun step second with token 4, without": func(h *history) { h.inside = nil },
		"F1 steps run once: step inside":                                        func(h *history) { h.inside = append(h.inside, effect{3, 5}) },
		"F1 steps run: item 3 is done, and its step last":                       func(h *history) { h.call("step", 3, "last").Out = "maybe" },
		"F2 undone backwards": func(h *history) {
			first, second := h.call("undo", 4, "first"), h.call("undo", 4, "second")
			first.At, second.At = second.At, first.At
		},
		"F2 undone with its result":                               func(h *history) { h.call("undo", 4, "first").Of = 5 },
		"F2 undone: item 3 is done":                               func(h *history) { u := h.call("undo", 4, "second"); u.Item, u.Token, u.Of = 3, 5, 4 },
		"F2 undone: item 4 is in state 64":                        func(h *history) { h.call("undo", 4, "first").Out = "maybe" },
		"F2 undone: item 4 is in state 64, and its step first is": func(h *history) { h.steps[1].State = durable.StepDone },
		"F3 no signal is lost: signal s1 was acknowledged":        func(h *history) { h.sent = nil },
		"F3 no signal is lost: signal s1 was taken":               func(h *history) { h.steps[0].Data = "" },
		"F3 signals are taken once: item 3 has taken signal s1":   func(h *history) { h.sent[0].Taken = 4 },
		"F3 signals are taken once: item 3 has taken signals": func(h *history) {
			h.sent = append(h.sent, sent{Item: 3, Taken: 3, Unique: "s2"})
			h.calls = append(h.calls, call{event: event{Op: "took", Unique: "s2", Item: 3, Token: 5, At: 30}})
		},
		"F3 late or not: item 3 was late with token 5, and": func(h *history) { h.call("took", 3, "").Op = "late" },
		"F3 late or not: item 3 was late with token 5 at": func(h *history) {
			h.call("took", 3, "").Op, h.steps[0].Signal, h.sent[0].Taken = "late", "", 0
		},
	} {
		h := good()
		breaks(h)
		faults := check(h).faults
		found := len(faults) == 0 && promise == ""
		for _, f := range faults {
			found = found || promise != "" && strings.HasPrefix(f, promise)
		}
		if !found {
			t.Errorf("a history in which %q is broken: the checks have found %q", promise, faults)
		}
	}
}

// tooMany adds claims of more items than may run at once.
func (h *history) tooMany() {
	for id := int64(10); id < 17; id++ {
		h.items[id] = item{ID: id, State: durable.Running, Token: id, job: job{Ref: string(rune('a' + id))}}
		h.changes = append(h.changes, change{Tx: uint64(id), Item: id, State: durable.Ready}, change{Tx: uint64(id), Item: id, Old: durable.Ready, State: durable.Running, Token: id})
	}
}

// Each fence is where a mutation looks for it.
func TestMutationsAreInTheSources(t *testing.T) {
	for _, m := range mutations {
		if _, err := m.source("../.."); err != nil {
			t.Error(err)
		}
	}
}

// Chaos finds what happens without a fence: in a function and in a statement of PostgreSQL, and on
// SQLite. -mutate all tries all of them.
func TestMutants(t *testing.T) {
	if os.Getenv("EPHEMERAL_REHEARSAL") == "" {
		t.Skip("it builds programs, which run for up to a minute each: set EPHEMERAL_REHEARSAL=1")
	}
	for _, lite := range []bool{false, true} {
		o := options{span: time.Minute, limit: 6, flows: 8, sqlite: lite, mutate: "nolimit"} // found within seconds
		if !lite && os.Getenv("EPHEMERAL_POSTGRES_PROGRAM") == "" {
			t.Log("NOT TESTED on PostgreSQL: run go run ./scripts/postgres go test ./scripts/chaos")
			continue
		}
		if err := o.runMutations(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
