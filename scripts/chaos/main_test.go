//go:build unix

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// good is the history of two items of a key. The lease of the second one was lost once.
func good() *history {
	h := &history{limits: limitsOf(6), items: map[int64]item{
		1: {ID: 1, Key: "ada", Lane: "hot", State: durable.Done, Token: 1, job: job{Ref: "r1", Tx: true}},
		2: {ID: 2, Key: "ada", Lane: "hot", State: durable.Done, Token: 3, job: job{Ref: "r2"}},
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
	h.effects = []effect{{1, 1}, {2, 2}, {2, 3}}
	at := int64(0)
	call := func(n int64, e event) event {
		at++
		e.Worker, e.Call, e.At = "w", n, at
		return e
	}
	var events []event
	for n, e := range []event{{Op: "enqueue", Ref: "r1", Item: 1}, {Op: "enqueue", Ref: "r2", Item: 2},
		{Op: "effect", Item: 1, Token: 1}, {Op: "effect", Item: 2, Token: 2}, {Op: "effect", Item: 2, Token: 3}} {
		begin := e
		if e.Op == "enqueue" {
			begin.Item = 0
		}
		e.Out = "ok"
		events = append(events, call(int64(n+1), begin), call(int64(n+1), e))
	}
	for _, e := range []event{{Op: "start", Item: 1, Token: 1, Tries: 1}, {Op: "stop", Item: 1, Token: 1}, {Op: "start", Item: 2, Token: 2, Tries: 1}, {Op: "start", Item: 2, Token: 3, Tries: 2},
		{Op: "told", Out: "durable.succeeded", Item: 1, Token: 1}, {Op: "told", Out: "durable.fenced", Item: 2, Token: 2}, {Op: "told", Out: "durable.succeeded", Item: 2, Token: 3}} {
		events = append(events, call(0, e))
	}
	h.read(events)
	return h
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
		o := options{span: time.Minute, limit: 6, sqlite: lite, mutate: "nolimit"} // found within seconds
		if !lite && os.Getenv("EPHEMERAL_POSTGRES_PROGRAM") == "" {
			t.Log("NOT TESTED on PostgreSQL: run go run ./scripts/postgres go test ./scripts/chaos")
			continue
		}
		if err := o.runMutations(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
