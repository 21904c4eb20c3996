package durabletest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

func step(name string, seq int, state durable.StepState, data string) durable.Step {
	s := durable.Step{Name: name, Seq: seq, State: state, Attempt: 1, Took: time.Duration(seq) * time.Millisecond}
	if data != "" {
		s.Data = []byte(data)
	}
	return s
}

func compensated(s durable.Step) durable.Step {
	s.Compensates = true
	return s
}

func parked(p durable.Park) durable.End {
	return durable.End{Kind: durable.EndParked, Park: p, Version: 3}
}

// A step with which a flow parks has the attempts after the steps of the end are written: one of them that is done resets them.
func (s *suite) attemptOfParks() {
	n := s.join(s.a)
	id := s.add("a")[0]
	s.end(n, retry, durable.Retry, s.claims(n, 1, "a")...)
	e := parked(durable.Park{Step: "w", Seq: 2, Pattern: "x", For: long})
	e.Steps = list(step("s", 1, durable.StepDone, "1"))
	s.end(n, e, durable.Ready, s.claims(n, 1, "a")...)
	s.equal("attempt", s.steps(id, "s done 1, w begun").Steps[1].Attempt, 1)
}

// Cancel decides in the order of ids, not in that of the call: of two dead items of a key that are to be undone, the older one becomes the head.
func (s *suite) cancelInOrder() {
	n := s.join(s.a)
	ids := s.add("a", "a")
	for range ids {
		i := s.claims(n, 1, "a")[0]
		s.equal("begun", s.record(i, compensated(step("x", 1, durable.StepBegun, ""))), true)
		s.end(n, dead, durable.Ready, i)
		s.end(n, dead, durable.Dead, s.claims(n, 1, "a")...)
	}
	states := must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, list(ids[1], 1<<50, ids[0], ids[1]), anyState, "left"))
	s.equal("states", states, list(durable.Blocked, 0, durable.Ready, durable.Blocked))
}

// An item is cancelled while it runs, loses its lease, and is cancelled again: it is undone, and does not end at once.
func (s *suite) cancelledTwice() {
	gone, alive := s.join(s.a), s.join(s.b)
	id := s.add("a")[0]
	s.equal("begun", s.record(s.claims(gone, 1, "a")[0], compensated(step("x", 1, durable.StepBegun, ""))), true)
	cancel := func(want durable.State) {
		s.Helper()
		s.equal("cancelled", must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, list(id), anyState, "left")), list(want))
	}
	cancel(durable.Running)
	s.expire(s.a, gone)
	must[durable.Beaten](s)(s.b.Beat(s.ctx, alive, ""))
	cancel(durable.Ready)
	i := s.claims(alive, 1, "a")[0]
	s.equal("to be undone", list[any](int(i.Flow), i.Cancel), list[any](2, ""))
}

// journal is the flow of an item, as the second opening of the database shows it, with "name state data" for each step.
func (s *suite) journal(id durable.ItemID) (j durable.Journal, words string) {
	s.Helper()
	j, ok, err := s.b.Journal(s.ctx, s.queue, id, true)
	s.ok(err)
	s.equal("journal", ok, true)
	var all []string
	for _, step := range j.Steps {
		word := fmt.Sprint(step.Name, " ", []string{"", "begun", "done", "undone"}[step.State], " ", step.Signal, string(step.Data))
		if all = append(all, strings.TrimSpace(word)); step.At.IsZero() || step.At.After(j.Time) {
			s.Fatalf("step %+v at %v", step, j.Time)
		}
	}
	return j, strings.Join(all, ", ")
}

func (s *suite) steps(id durable.ItemID, want string) durable.Journal {
	s.Helper()
	j, words := s.journal(id)
	s.equal("steps", words, want)
	return j
}

func (s *suite) record(i durable.Item, steps ...durable.Step) bool {
	s.Helper()
	return must[[]bool](s)(s.a.Record(s.ctx, s.queue, list(durable.Record{ID: i.ID, Token: i.Token, Version: 7, Steps: steps})))[0]
}

func (s *suite) signal(to durable.Signal) durable.Signalled {
	s.Helper()
	return must[[]durable.Signalled](s)(s.b.Signal(s.ctx, s.queue, list(to)))[0]
}

func (s *suite) left(id durable.ItemID) durable.State {
	s.Helper()
	s.tick()
	return must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, list(id), anyState, "left"))[0]
}

func (s *suite) retried(id durable.ItemID) int {
	s.Helper()
	return len(must[[]durable.ItemID](s)(s.b.Again(s.ctx, s.queue, list(id), anyState)))
}

// Steps are written under the token of the claim, by Record and with ends. A step that is done resets the attempts.
func (s *suite) records() {
	n := s.join(s.a)
	ids := s.add("a", "b", "c")
	for range 3 {
		s.end(n, retry, durable.Retry, s.claims(n, 3, "a", "b", "c")...)
	}
	got := s.claims(n, 3, "a", "b", "c")
	s.equal("no flow", list(int(got[0].Flow), len(s.steps(ids[0], "").Steps)), list(0, 0))
	s.equal("begun", s.record(got[0], compensated(step("x", 1, durable.StepBegun, ""))), true)
	s.equal("attempts", list(s.item(ids[0]).Attempts, int(s.item(ids[0]).Flow)), list(4, 1))
	stale := got[1]
	stale.Token--
	current := must[[]bool](s)(s.b.Record(s.ctx, s.queue, list(
		durable.Record{ID: got[2].ID, Token: got[2].Token, Version: 8, Steps: list(step("z", 2, durable.StepDone, `"z"`), step("y", 2, durable.StepDone, ""))},
		durable.Record{ID: stale.ID, Token: stale.Token, Steps: list(step("x", 1, durable.StepDone, ""))},
		durable.Record{ID: got[0].ID, Token: got[0].Token, Version: 8, Steps: list(compensated(step("x", 1, durable.StepDone, `{"a":1}`)), step("w", 2, durable.StepBegun, ""))},
		durable.Record{ID: 1 << 50, Token: 1, Steps: list(step("x", 1, durable.StepDone, ""))})))
	s.equal("current", current, list(true, false, true, false))
	j := s.steps(ids[0], `x done {"a":1}, w begun`)
	s.equal("version, class and state", list(fmt.Sprint(j.Version), j.Class, fmt.Sprint(j.Undo), j.Reason), list("7", "", "none", ""))
	s.equal("x", j.Steps[0], func(x durable.Step) durable.Step {
		return durable.Step{Name: "x", Seq: 1, State: durable.StepDone, Compensates: true, Attempt: 1, Took: time.Millisecond, At: x.At, Data: []byte(`{"a":1}`)}
	}(j.Steps[0]))
	s.steps(ids[1], "")
	s.equal("by name", s.steps(ids[2], `y done, z done "z"`).Version, 8)
	s.equal("attempts", list(s.item(ids[0]).Attempts, s.item(ids[1]).Attempts, s.item(ids[2]).Attempts), list(1, 4, 1))
	bare, _, err := s.b.Journal(s.ctx, s.queue, ids[0], false)
	s.ok(err)
	s.equal("no data is read", list(len(bare.Steps), len(bare.Steps[0].Data)), list(2, 0))

	s.end(n, durable.End{Kind: durable.EndRetry, Err: "no", Steps: list(step("x", 1, durable.StepDone, "1")), Version: 9}, durable.Retry, got[1])
	s.equal("with the end", s.steps(ids[1], "x done 1").Version, 9)
	s.equal("attempts", s.item(ids[1]).Attempts, 1)
	s.equal("the claim has ended", s.record(got[1], step("y", 1, durable.StepDone, "")), false)
	late := endOf(got[1], durable.End{Kind: durable.EndRetry, Steps: list(step("late", 1, durable.StepDone, ""))})
	s.equal("twice", must[[]durable.Ended](s)(endAll(s, s.b, n, late))[0].Outcome, durable.OutcomeAlready)
	late.Token--
	s.equal("fenced", must[[]durable.Ended](s)(endAll(s, s.b, n, late))[0].Outcome, durable.OutcomeFenced)
	s.steps(ids[1], "x done 1")
	done := endOf(got[2], durable.End{Kind: durable.EndDone, Steps: list(step("last", 9, durable.StepDone, `"l"`), step("y", 2, durable.StepDone, "2"))})
	done.Token--
	s.equal("fenced", must[[]durable.Ended](s)(endAll(s, s.b, n, done))[0].Outcome, durable.OutcomeFenced)
	s.steps(ids[2], `y done, z done "z"`)
	done.Token++
	s.equal("done", must[[]durable.Ended](s)(endAll(s, s.b, n, done))[0].Outcome, durable.OutcomeEnded)
	s.steps(ids[2], `y done 2, z done "z", last done "l"`)
	s.end(n, durable.End{Kind: durable.EndGivenBack, Steps: list(step("w", 2, durable.StepDone, "2"))}, durable.Ready, got[0])
	s.equal("given back", s.item(ids[0]).Attempts, 0)
	again := s.claims(n, 2, "a", "b")
	s.equal("claims know", list(int(again[0].Flow), int(again[1].Flow), again[0].Attempts), list(1, 1, 1))

	gone := s.join(s.b)
	s.end(n, back, durable.Ready, again...)
	lost := s.claims(gone, 2, "a", "b")[1]
	s.expire(s.b, gone)
	must[durable.Beaten](s)(s.a.Beat(s.ctx, n, ""))
	s.equal("of a lost lease", s.record(lost, step("late", 1, durable.StepDone, "")), false)
	s.equal("nor after a new claim", len(s.claim(n, durable.Want{Max: 2})) > 0 && s.record(lost, step("late", 1, durable.StepDone, "")), false)
	s.steps(ids[1], "x done 1")

	s.queue += " of one step"
	n = s.join(s.a)
	one := s.add("d")[0]
	s.end(n, durable.End{Kind: durable.EndDone, Steps: list(step("only", 1, durable.StepDone, ""))}, durable.Done, s.claims(n, 1, "d")...)
	s.equal("no flow", list(int(s.item(one).Flow), len(s.steps(one, "").Steps)), list(0, 0))
}

// Signals are kept in the order in which they came. An id is accepted once for each key or item, and there are at most MaxSignals.
func (s *suite) signals() {
	ids := s.add("a", "")
	one := s.signal(durable.Signal{Key: "a", Name: "x.y", Data: []byte(`{"n":1}`), UniqueID: "1"})
	s.equal("twice", s.signal(durable.Signal{Key: "a", Name: "other", UniqueID: "1"}), durable.Signalled{Seq: one.Seq, Duplicate: true})
	item := s.signal(durable.Signal{Item: ids[1], Name: "x", UniqueID: "1"})
	s.equal("another target", list(item.Duplicate, s.signal(durable.Signal{Item: ids[0], Name: "x", UniqueID: "1"}).Duplicate, s.signal(durable.Signal{Key: "nobody", Name: "x", UniqueID: "1"}).Duplicate), list(false, false, false))
	both := must[[]durable.Signalled](s)(s.a.Signal(s.ctx, s.queue, list(durable.Signal{Key: "a", Name: "p", UniqueID: "2"}, durable.Signal{Key: "b", Name: "b"}, durable.Signal{Key: "a", Name: "q", UniqueID: "2"})))
	s.equal("in one call", list(both[0].Duplicate, both[1].Duplicate, both[2].Duplicate, both[2].Seq == both[0].Seq), list(false, false, true, true))
	all := must[[]durable.Signal](s)(s.b.Signals(s.ctx, s.queue, "a", 0, 10))
	s.equal("kept", len(all), 2)
	if all[0].Time.IsZero() || all[1].Seq != both[0].Seq {
		s.Fatalf("signals %+v", all)
	}
	s.equal("first", all[0], durable.Signal{Seq: one.Seq, Key: "a", Name: "x.y", Data: []byte(`{"n":1}`), Time: all[0].Time, UniqueID: "1"})
	s.equal("after", len(must[[]durable.Signal](s)(s.b.Signals(s.ctx, s.queue, "a", one.Seq, 10))), 1)
	s.equal("limit", must[[]durable.Signal](s)(s.b.Signals(s.ctx, s.queue, "a", 0, 1))[0].Seq, one.Seq)
	_, err := s.a.Signal(s.ctx, s.queue, list(durable.Signal{Key: "a", Name: "r"}, durable.Signal{Item: 1 << 50, Name: "r"}))
	s.equal("unknown", errors.Is(err, durable.ErrUnknown), true)
	var many []durable.Signal
	for range durable.MaxSignals / 2 {
		many = append(many, durable.Signal{Key: "full", Name: "n"})
	}
	must[[]durable.Signalled](s)(s.a.Signal(s.ctx, s.queue, many))
	must[[]durable.Signalled](s)(s.a.Signal(s.ctx, s.queue, many[1:]))
	_, err = s.a.Signal(s.ctx, s.queue, list(durable.Signal{Key: "a", Name: "r"}, durable.Signal{Key: "full", Name: "1000"}, durable.Signal{Key: "full", Name: "1001", UniqueID: "u"}))
	s.equal("full", errors.Is(err, core.ErrFull), true)
	s.equal("none of them", len(must[[]durable.Signal](s)(s.b.Signals(s.ctx, s.queue, "a", 0, 10))), 2)
	s.signal(durable.Signal{Key: "full", Name: "1000", UniqueID: "u"})
	s.equal("duplicates fit", s.signal(durable.Signal{Key: "full", Name: "1000", UniqueID: "u"}).Duplicate, true)
	s.signal(durable.Signal{Item: ids[0], Name: "fits"})
	s.equal("another queue", len(must[[]durable.Signal](s)(s.b.Signals(s.ctx, s.queue+"2", "a", 0, 10))), 0)

	keep := durable.Keep{Done: -1, Dead: -1, Cancelled: -1, Signals: 0}
	kept := func(key string) int { return len(must[[]durable.Signal](s)(s.b.Signals(s.ctx, s.queue, key, 0, 1000))) }
	time.Sleep(time.Millisecond)
	s.pruned(durable.Keep{Done: -1, Dead: -1, Cancelled: -1, Signals: -1}, 1000)
	s.equal("for ever", list(kept("a"), kept("full")), list(2, 1000))
	s.pruned(keep, 1000)
	s.equal("while the key has an item", list(kept("a"), kept("nobody"), kept("full")), list(2, 0, 0))
	s.left(ids[0])
	keep.Signals = long
	s.pruned(keep, 1000)
	s.equal("for a time after its end", kept("a"), 2)
	keep.Signals = 0
	time.Sleep(time.Millisecond)
	s.pruned(keep, 1000)
	s.equal("not after that", kept("a"), 0)
	s.left(ids[1])
	s.equal("of an item", s.signal(durable.Signal{Item: ids[1], Name: "x", UniqueID: "1"}).Duplicate, true)
	s.pruned(durable.Keep{}, 1000)
	_, err = s.a.Signal(s.ctx, s.queue, list(durable.Signal{Item: ids[1], Name: "x"}))
	s.equal("pruned with it", errors.Is(err, durable.ErrUnknown), true)
}

// A parked flow is only a row. It takes signals that came since its item was enqueued, in their order, each once.
func (s *suite) parking() {
	n := s.join(s.a, func(n *durable.Node) { n.Classes = list(durable.Class{Name: "c", Limit: 1}) })
	s.signal(durable.Signal{Key: "a", Name: "x.early"})
	time.Sleep(time.Millisecond)
	id := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Key: "a", Class: "c", Data: []byte("a")})))[0].ID
	wait := durable.Park{Step: "w", Seq: 2, Pattern: "x.*, y", For: long}
	park := func(p durable.Park, steps ...durable.Step) durable.Item {
		s.Helper()
		i := s.claims(n, 1, "a")[0]
		e := parked(p)
		e.Steps = steps
		s.end(n, e, durable.Ready, i)
		return i
	}
	at := s.item(id).RunAt
	first := park(wait, step("s", 1, durable.StepDone, "1"))
	j := s.steps(id, "s done 1, w begun")
	w := j.Steps[1]
	s.equal("waits", *j.Wait, durable.Parked{Step: "w", Pattern: "x.*, y", Since: w.At, Until: w.Until})
	s.equal("until", list(w.Until.Sub(w.At), s.item(id).RunAt.Sub(w.Until), time.Duration(w.Attempt), time.Duration(j.Version)), list(long, 0, 1, 3))
	i := s.item(id)
	s.equal("item", list(int(i.State), i.Attempts, i.Losses, len(i.Class), int(i.Flow)), list(int(durable.Ready), 0, 0, 0, 1))
	s.equal("its class", j.Class, "c")
	x, _, err := s.b.Explain(s.ctx, s.queue, id)
	s.ok(err)
	s.equal("no attempt", len(x.Attempts), 0)
	s.equal("again", must[[]durable.Ended](s)(endAll(s, s.b, n, endOf(first, parked(wait))))[0].Outcome, durable.OutcomeAlready)
	s.equal("not yet", len(s.claim(n, durable.Want{Max: 5})), 0)
	must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{})))
	ahead := s.claim(n, durable.Want{Max: 1, Ahead: 1})
	s.equal("claims ahead go on", len(ahead), 1)
	s.end(n, done, durable.Done, ahead...)
	s.equal("another name", s.signal(durable.Signal{Key: "a", Name: "z"}).Woken, false)
	s.equal("another key", s.signal(durable.Signal{Key: "b", Name: "y"}).Woken, false)
	time.Sleep(time.Millisecond)
	s.equal("woken", s.signal(durable.Signal{Key: "a", Name: "x.1", Data: []byte("{}")}).Woken, true)
	s.equal("once", s.signal(durable.Signal{Key: "a", Name: "x.2"}).Woken, false)
	j = s.steps(id, "s done 1, w done x.1{}")
	s.equal("waits no more", j.Wait == nil && s.item(id).RunAt.Before(w.Until) && s.item(id).RunAt.After(at), true)
	s.equal("until stays", j.Steps[1].Until, w.Until)

	at = s.item(id).RunAt
	time.Sleep(time.Millisecond)
	park(durable.Park{Step: "w", Seq: 2, Pattern: "x.2", For: long}) // a step that is done already: it only goes back
	s.equal("when it was due", s.item(id).RunAt, at)
	s.steps(id, "s done 1, w done x.1{}")
	park(durable.Park{Step: "v", Seq: 3, Pattern: "x.*, y", For: long})
	s.steps(id, "s done 1, w done x.1{}, v done x.2")
	s.signal(durable.Signal{Item: id, Name: "y"})
	s.signal(durable.Signal{Key: "a", Name: "y"})
	park(durable.Park{Step: "u", Seq: 4, Pattern: "x.*, y", For: long})
	park(durable.Park{Step: "t", Seq: 5, Pattern: "x.*, y", For: long})
	s.steps(id, "s done 1, w done x.1{}, v done x.2, u done y, t done y")
	all := must[[]durable.Signal](s)(s.b.Signals(s.ctx, s.queue, "a", 0, 10))
	var taken []durable.ItemID
	for _, one := range all {
		taken = append(taken, one.Taken)
	}
	s.equal("taken", taken, list(0, 0, id, id, id))

	i = park(durable.Park{Step: "nap", Seq: 6, For: time.Millisecond}, step("t", 5, durable.StepDone, ""))
	time.Sleep(2 * time.Millisecond)
	j = s.steps(id, "s done 1, w done x.1{}, v done x.2, u done y, t done, nap begun")
	s.equal("it sleeps no more", j.Wait == nil && !j.Steps[5].Until.After(j.Time), true)
	until := j.Steps[5].Until
	s.equal("late", s.signal(durable.Signal{Key: "a", Name: "nap"}).Woken, false)
	park(durable.Park{Step: "nap", Seq: 6, For: long})
	s.equal("the first deadline counts", s.item(id).RunAt, until)
	park(durable.Park{Step: "never", Seq: 7, Pattern: "never", For: 2 * time.Millisecond})
	time.Sleep(4 * time.Millisecond)
	s.equal("after the deadline", s.signal(durable.Signal{Key: "a", Name: "never"}).Woken, false)
	s.equal("is due", s.item(id).Class, "")
	s.end(n, durable.End{Kind: durable.EndSnoozed, After: long}, durable.Ready, s.claims(n, 1, "a")...)
	s.equal("not while it is snoozed", list(s.signal(durable.Signal{Key: "a", Name: "never"}).Woken, s.steps(id, "s done 1, w done x.1{}, v done x.2, u done y, t done, nap begun, never begun").Wait == nil), list(false, true))
	s.left(id)
	s.equal("cancelled", s.states(id), list(durable.Cancelled))

	id = s.add("")[0] // without a key
	s.end(n, parked(wait), durable.Ready, s.claims(n, 1, "")...)
	s.equal("no key is no target", s.signal(durable.Signal{Item: ahead[0].ID, Name: "y"}).Woken, false)
	s.equal("by its id", s.signal(durable.Signal{Item: id, Name: "y"}).Woken, true)
	s.end(n, done, durable.Done, s.claims(n, 1, "")...)

	pair := s.add("k", "k") // two flows of one key in a row
	s.signal(durable.Signal{Key: "k", Name: "y", Data: []byte("1")})
	s.signal(durable.Signal{Key: "k", Name: "y", Data: []byte("2")})
	for n2, id := range pair {
		s.end(n, parked(wait), durable.Ready, s.claims(n, 1, "k")...)
		s.steps(id, fmt.Sprint("w done y", n2+1))
		s.end(n, done, durable.Done, s.claims(n, 1, "k")...)
	}
	id = s.add("r")[0]
	i = s.claims(n, 1, "r")[0]
	s.equal("cancel", s.left(id), durable.Running)
	s.end(n, parked(wait), durable.Cancelled, i)

	id = s.add("q")[0] // Cancel, and then Again: the deadline goes on
	s.end(n, parked(wait), durable.Ready, s.claims(n, 1, "q")...)
	until = s.steps(id, "w begun").Wait.Until
	s.equal("cancel", s.left(id), durable.Cancelled)
	s.equal("no wait", s.steps(id, "w begun").Wait == nil, true)
	s.equal("again", s.retried(id), 1)
	s.equal("no wait", s.steps(id, "w begun").Wait == nil && !s.signal(durable.Signal{Key: "q", Name: "y"}).Woken, true)
	s.end(n, parked(wait), durable.Ready, s.claims(n, 1, "q")...)
	s.equal("the deadline", s.steps(id, "w done y").Steps[0].Until, until)
}

// An item goes back to be claimed with another class, and shares its limits.
func (s *suite) steppedClasses() {
	n := s.join(s.a, func(n *durable.Node) {
		n.Classes = list(durable.Class{Name: "own"}, durable.Class{Name: "c", Limit: 1}, durable.Class{Name: "d", Rate: core.Rate{PerSecond: 1e-6, Burst: 2}})
	})
	in := list(durable.Insert{Class: "own", Data: []byte("1")}, durable.Insert{Class: "own", Data: []byte("2")})
	ids := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, in))
	both := s.claims(n, 2, "1", "2")
	s.end(n, parked(durable.Park{Class: "c"}), durable.Ready, both...)
	one := s.claims(n, 2, "1")[0]
	s.equal("class", list(one.Class, s.steps(one.ID, "").Class, fmt.Sprint(one.Attempts, one.Flow)), list("c", "own", "1 1"))
	s.end(n, durable.End{Kind: durable.EndParked, Park: durable.Park{Class: "d"}, Steps: list(step("s", 1, durable.StepDone, ""))}, durable.Ready, one)
	again := s.claims(n, 2, "2", "1")
	s.end(n, retry, durable.Retry, again[1])
	again = s.claims(n, 2, "1")
	s.equal("a retry takes a token", list(again[0].Class, s.steps(one.ID, "s done").Class), list("d", "own"))
	s.end(n, retry, durable.Retry, again[0])
	s.claims(n, 2)
	s.equal("tokens are over", s.item(ids[0].ID).State, durable.Retry)
	s.equal("its own again", must[[]durable.State](s)(s.a.Cancel(s.ctx, s.queue, list(one.ID), anyState, "x"))[0], durable.Cancelled)
}

// What has steps to be undone is undone in place of its end. Then the end counts that it had first, or that of a Cancel meanwhile.
func (s *suite) undoing() {
	n := s.join(s.a)
	begun := compensated(step("a", 1, durable.StepBegun, ""))
	all := s.add("k", "k", "", "", "h", "w")
	claimed := s.claims(n, 5, "k", "", "", "h", "w")
	for _, i := range claimed {
		s.equal("recorded", s.record(i, begun, step("b", 2, durable.StepDone, "")), true)
	}
	undo := func(id durable.ItemID, undo durable.State, reason string) {
		s.Helper()
		j := s.steps(id, "a begun, b done")
		i := s.item(id)
		s.equal("undone", list(fmt.Sprint(j.Undo), j.Reason, fmt.Sprint(i.State, i.Flow, i.Attempts), i.Cancel), list(fmt.Sprint(undo), reason, "ready 2 0", ""))
	}
	k, one, two, h, w := claimed[0], claimed[1], claimed[2], claimed[3], claimed[4]
	s.end(n, durable.End{Kind: durable.EndDead, Err: "dead", After: long, HandOver: true}, durable.Ready, k)
	undo(k.ID, durable.Dead, "dead")
	x, _, err := s.b.Explain(s.ctx, s.queue, k.ID)
	s.ok(err)
	s.equal("attempt", list(len(x.Attempts) == 1 && x.Attempts[0].Kind == durable.EndDead, x.Item.RunAt.After(x.Time)), list(true, false))
	s.end(n, durable.End{Kind: durable.EndHalted, Err: "no key"}, durable.Ready, one)
	undo(one.ID, durable.Dead, "no key")
	s.end(n, durable.End{Kind: durable.EndHalted, Err: "halted"}, durable.Ready, h)
	undo(h.ID, durable.Halted, "halted")
	s.equal("running", s.left(two.ID), durable.Running)
	s.end(n, durable.End{Kind: durable.EndSnoozed, After: long}, durable.Ready, two)
	undo(two.ID, durable.Cancelled, "left")
	s.end(n, durable.End{Kind: durable.EndSnoozed, After: long}, durable.Ready, w)
	s.equal("it waits", s.left(w.ID), durable.Ready)
	undo(w.ID, durable.Cancelled, "left")

	again := s.claims(n, 9, "k", "", "h", "", "w")
	s.equal("the claim says it", list(int(again[0].Flow), again[0].Attempts), list(2, 1))
	got := must[[]durable.Ended](s)(endAll(s, s.a, n, endOf(again[0], done)))[0]
	s.equal("never done", got.Outcome, durable.OutcomeFenced)
	for range 3 {
		s.end(n, retry, durable.Retry, again[0])
		again[0] = s.claims(n, 1, "k")[0]
	}
	s.equal("attempts", again[0].Attempts, 4)
	undone := begun
	undone.State = durable.StepUndone
	s.equal("recorded", s.record(again[0], undone), true)
	s.equal("attempts", s.item(k.ID).Attempts, 1)
	s.end(n, durable.End{Kind: durable.EndDead, Err: "other"}, durable.Dead, again[0])
	s.equal("its end", list(s.item(k.ID).Err, s.steps(k.ID, "a undone, b done").Reason), list("dead", "dead"))
	next := s.claims(n, 1, "k")[0]
	s.equal("the next one", next.ID, all[1])
	s.equal("again", s.retried(k.ID), 1)
	s.equal("again from the start", list(fmt.Sprint(s.states(k.ID)), fmt.Sprint(s.item(k.ID).Flow), fmt.Sprint(len(s.steps(k.ID, "").Steps))), list("[blocked]", "0", "0"))
	s.end(n, done, durable.Done, next)
	s.end(n, done, durable.Done, s.claims(n, 1, "k")...)

	half := durable.End{Kind: durable.EndHalfUndone, Err: "half"} // also without a key
	s.end(n, half, durable.Halted, again[1])
	s.equal("kept", s.pruned(durable.Keep{Done: -1}, 10), 0)
	j := s.steps(one.ID, "a begun, b done")
	s.equal("half undone", list(fmt.Sprint(j.Undo), j.Reason, s.item(one.ID).Err), list("dead", "no key", "half"))
	s.equal("again", s.retried(one.ID), 1)
	undo(one.ID, durable.Dead, "no key")
	s.end(n, half, durable.Halted, s.claims(n, 1, "")...)
	s.equal("cancel", s.left(one.ID), durable.Ready)
	undo(one.ID, durable.Cancelled, "left")
	i := s.claims(n, 1, "")[0]
	s.equal("while it runs", must[[]durable.State](s)(s.b.Cancel(s.ctx, s.queue, list(i.ID), anyState, "twice"))[0], durable.Running)
	s.equal("only the reason", list(s.item(i.ID).Cancel, s.steps(i.ID, "a begun, b done").Reason), list("", "twice"))
	s.equal("recorded", s.record(i, undone), true)
	s.end(n, dead, durable.Cancelled, i)
	s.equal("the last reason", s.item(i.ID).Err, "twice")

	s.end(n, durable.End{Kind: durable.EndRetry, After: long, Err: "no"}, durable.Retry, again[2]) // halted
	s.equal("waits for its next try", s.left(h.ID), durable.Retry)
	s.equal("then cancelled", fmt.Sprint(s.steps(h.ID, "a begun, b done").Undo), "cancelled")
	s.end(n, durable.End{Kind: durable.EndCancelled, Steps: list(undone)}, durable.Cancelled, again[3])
	s.equal("cancel after the end", s.left(two.ID), durable.State(0))
	s.end(n, back, durable.Ready, again[4])

	id := s.add("halts")[0] // undone, then halted: again from the start
	i = s.claims(n, 2, "w", "halts")[1]
	s.equal("recorded", s.record(i, begun), true)
	s.end(n, durable.End{Kind: durable.EndHalted, Err: "halted"}, durable.Ready, i)
	i = s.claims(n, 1, "halts")[0]
	s.equal("recorded", s.record(i, undone), true)
	s.end(n, durable.End{Kind: durable.EndHalted}, durable.Halted, i)
	s.equal("again", s.retried(id), 1)
	s.steps(id, "")
	s.end(n, done, durable.Done, s.claims(n, 1, "halts")...)

	id = s.add("d")[0] // without a step to be undone: from the failed step
	i = s.claims(n, 1, "d")[0]
	s.equal("recorded", s.record(i, step("s", 1, durable.StepDone, "1")), true)
	s.end(n, dead, durable.Dead, i)
	s.equal("again", s.retried(id), 1)
	s.steps(id, "s done 1")
	i = s.claims(n, 1, "d")[0]
	s.equal("it has a flow", i.Flow, uint8(1))
	s.equal("recorded", s.record(i, compensated(step("t", 2, durable.StepDone, ""))), true)
	s.end(n, dead, durable.Ready, i)
	s.end(n, half, durable.Halted, s.claims(n, 1, "d")...)
	s.equal("halted", s.states(id), list(durable.Halted))
	s.equal("another head", s.states(s.add("d")...), list(durable.Blocked))

	one2 := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Unique: "u", UniqueFor: long, Replace: true, Data: []byte("u")})))[0]
	i = s.claims(n, 1, "u")[0]
	s.equal("recorded", s.record(i, step("s", 1, durable.StepDone, "1")), true)
	s.end(n, durable.End{Kind: durable.EndRetry, After: long, Err: "no"}, durable.Retry, i)
	two2 := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Unique: "u", UniqueFor: long, Replace: true})))[0]
	s.equal("a flow is not replaced", list(two2.Duplicate, two2.ID > one2.ID, string(s.item(one2.ID).Data) == "u"), list(false, true, true))
}

// However a signal and a park or a deadline meet, they are decided once.
func (s *suite) meetings() {
	n := s.join(s.a)
	for round := range 60 {
		key := fmt.Sprint("m", round)
		id := s.add(key)[0]
		limit := long
		if round%3 == 2 {
			limit = time.Duration(round) * 10 * time.Microsecond
		}
		e := endOf(s.claims(n, 1, key)[0], parked(durable.Park{Step: "w", Seq: 1, Pattern: "go", For: limit}))
		var both sync.WaitGroup
		both.Go(func() {
			for {
				ended, err := endAll(s, s.a, n, e)
				if s.ok(err); ended[0].Outcome != durable.OutcomeBusy {
					s.equal("parked", ended[0].Outcome, durable.OutcomeEnded)
					return
				}
				time.Sleep(100 * time.Microsecond)
			}
		})
		var sent durable.Signalled
		both.Go(func() {
			if limit < long {
				time.Sleep(rand.N(2 * limit))
			}
			sent = s.signal(durable.Signal{Key: key, Name: "go"})
		})
		both.Wait()
		j, words := s.journal(id)
		taken := must[[]durable.Signal](s)(s.b.Signals(s.ctx, s.queue, key, 0, 1))[0].Taken == id
		s.equal("no signal is lost", words == "w done go", taken)
		if limit == long {
			s.equal("it is taken", taken && !s.item(id).RunAt.After(j.Time), true)
		} else if !taken {
			s.equal("or too late", sent.Woken, false)
		}
		s.left(id)
	}
}
