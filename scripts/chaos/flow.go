//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
)

// A trip is what the flow of an item does. All runs of a body do the same.
type trip struct {
	Undo  bool          `json:",omitempty"` // its steps have a Compensate
	Tx    bool          `json:",omitempty"` // one has its effect in the transaction that records it
	Await time.Duration `json:",omitempty"` // for an answer; 0: it does not
	Sleep time.Duration `json:",omitempty"`
	Deaf  bool          `json:",omitempty"` // goes on if the answer is late
	Fails bool          `json:",omitempty"` // for ever, after its last step
}

// The steps of a flow in their order.
var stepNames = []string{"first", "inside", "second", awaits, "third", "sleep", "last"}

const (
	awaits   = "answer"
	answered = "chaos.answer"
)

// place is where a step is in its flow.
func place(name string) int { return slices.Index(stepNames, name) }

func (w *worker) trip() *trip {
	t := &trip{Undo: w.chance(2), Tx: w.chance(2), Deaf: w.chance(2), Fails: w.chance(6)}
	if !w.chance(4) {
		t.Await = time.Duration(200+w.random(800)) * time.Millisecond
	}
	if w.chance(3) {
		t.Sleep = time.Duration(1+w.random(500)) * time.Millisecond
	}
	return t
}

// flow is the body of a flow.
func (w *worker) flow(ctx context.Context, j job) error {
	c, t := durable.ClaimFrom(ctx), j.Trip
	if t.Await > 0 {
		w.write(event{Op: "waits", Item: int64(c.ID), Skip: j.Key})
	}
	if err := w.step(ctx, j, "first"); err != nil {
		return err
	}
	if t.Tx {
		if err := w.db.step(ctx, "inside", "insert into chaos.inside (item, token) values ($1, $2)", int64(c.ID), c.Token); err != nil {
			return err
		}
	}
	if err := w.step(ctx, j, "second"); err != nil {
		return err
	}
	if t.Await > 0 {
		said, err := flow.Await(ctx, awaits, answered, t.Await)
		e := event{Op: "late", Item: int64(c.ID), Token: c.Token}
		if err == nil {
			e.Op = "took"
			err = said.Decode(&e.Unique)
		}
		if late := errors.Is(err, flow.ErrLate); err == nil || late {
			w.write(e)
			if late && t.Deaf {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	if err := w.step(ctx, j, "third"); err != nil {
		return err
	}
	if t.Sleep > 0 {
		if err := flow.Sleep(ctx, "sleep", t.Sleep); err != nil {
			return err
		}
	}
	if err := w.step(ctx, j, "last"); err != nil {
		return err
	}
	if t.Fails {
		return durable.Permanent(errors.New("chaos: the flow has failed"))
	}
	return nil
}

// step is a step that writes when it runs, and when it is undone. Its result is the token of its claim.
func (w *worker) step(ctx context.Context, j job, name string) error {
	c := durable.ClaimFrom(ctx)
	e := event{Ref: name, Item: int64(c.ID), Token: c.Token}
	call := func(ctx context.Context, e event) error {
		end := w.begin(e)
		err := error(nil)
		if !w.Calm {
			err = w.live(ctx, j)
		}
		if err == nil {
			end(0, "ok")
		}
		return err
	}
	s := flow.Step[int64]{Name: name, Do: func(ctx context.Context) (int64, error) {
		e.Op = "step"
		return c.Token, call(ctx, e)
	}}
	if j.Trip.Undo {
		s.Compensate = func(ctx context.Context, token int64, known bool) error {
			if e.Op = "undo"; known {
				e.Of = token
			}
			return call(ctx, e)
		}
	}
	if w.chance(2) { // a body that goes on without its lease
		ctx = context.WithoutCancel(ctx)
	}
	_, err := flow.Do(ctx, s)
	return err
}

// answer sends a signal to a flow that waits for one, or will, or did. Some are sent to its key, some are sent twice at once, and some never.
func (c *cluster) answer(ctx context.Context, to event) {
	if to.Item%5 == 0 {
		return
	}
	time.Sleep(time.Duration(rand.IntN(int(time.Second))))
	e := event{Op: "signal", Item: to.Item, Unique: fmt.Sprint(c.calls.Add(1))}
	if to.Skip != "" && rand.IntN(3) > 0 {
		e.Item, e.Skip = 0, to.Skip
	}
	send := func() error {
		switch {
		case e.Item != 0:
			return c.queue.SignalItem(ctx, durable.ItemID(e.Item), answered, e.Unique, e.Unique)
		case rand.IntN(2) == 0:
			return c.queue.Signal(ctx, e.Skip, answered, e.Unique, e.Unique)
		}
		return c.db.change(ctx, func(_ context.Context, tx transaction) error { // a transaction that stays open, in which a flow wants to park
			err := tx.signal(c.queue, e.Skip, answered, e.Unique, e.Unique)
			time.Sleep(rand.N(c.db.open / 10))
			return err
		})
	}
	end, outs := c.begin(e), make(chan string)
	twice := 1 + rand.IntN(2)
	for range twice {
		go func() { outs <- insist(ctx, send) }()
	}
	out := <-outs
	if twice > 1 {
		out = max(out, <-outs) // one of them may be ok
	}
	end(0, out)
}

// A step is one that is in the store at the end. Times are microseconds.
type step struct {
	Item, At, Until, Enqueued int64
	Name, Signal, Data        string
	State                     durable.StepState
	Compensates               bool
}

// A sent is a signal that is in the store at the end.
type sent struct {
	Item, At, Taken int64
	Key, Unique     string
}

// A life is the time from the beginning of a flow until it is undone and begins again.
type life struct {
	item int64
	n    int
}

// checkFlows checks four promises. A step does not run again once another one has followed. If the item is dead or cancelled, all that has begun is
// undone, last step first. Nothing else is undone. No signal is lost or taken twice.
func (h *history) checkFlows(r *report) {
	lives, last := map[effect]life{}, map[int64]int{}
	for _, c := range h.changes {
		i := h.items[c.Item]
		if c.Old&(durable.Dead|durable.Cancelled) != 0 && c.State&durable.Waiting != 0 && i.job.Trip != nil && i.job.Trip.Undo {
			last[c.Item]++
		}
		if c.State == durable.Running {
			lives[effect{c.Item, c.Token}] = life{c.Item, last[c.Item]}
		}
	}
	inside := map[life]int{}
	for _, e := range h.inside {
		l := lives[e]
		if inside[l]++; inside[l] > 1 {
			r.fault("F1 steps run once", "step inside of item %d has its effect twice, in life %d", l.item, l.n)
		}
	}
	calls := map[life][]call{}
	for _, c := range h.calls {
		if c.Op == "step" || c.Op == "undo" || c.Op == "took" || c.Op == "late" {
			l := lives[effect{c.Item, c.Token}]
			calls[l] = append(calls[l], c)
		}
	}
	stored := map[int64][]step{}
	for _, s := range h.steps {
		stored[s.Item] = append(stored[s.Item], s)
	}
	for l, all := range calls {
		h.checkSteps(r, l, all, inside[l])
	}
	for id, i := range h.items {
		if i.job.Trip != nil {
			l := life{id, last[id]}
			r.counts["flows"]++
			h.checkUndone(r, i, calls[l], stored[id], inside[l])
		}
	}
	h.checkSignals(r, lives, last, stored)
}

// checkSteps checks what has run in a life of a flow.
func (h *history) checkSteps(r *report, l life, all []call, inside int) {
	slices.SortStableFunc(all, func(a, b call) int { return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.At, b.At)) })
	reached, by := -1, call{} // the farthest step that has begun, so that those before it are recorded
	for _, c := range all {
		at := place(c.Ref)
		switch c.Op {
		case "took", "late":
			at = place(awaits)
		case "undo":
			at = math.MaxInt
		}
		if c.Op == "step" {
			r.counts["steps"]++
			if at < reached {
				r.fault("F1 steps run once", "item %d has begun step %s with token %d, after %s %s with token %d", l.item, c.Ref, c.Token, by.Op, by.Ref, by.Token)
			}
			if at > place("inside") && inside == 0 && h.items[l.item].job.Trip.Tx {
				r.fault("F1 steps run once", "item %d has begun step %s with token %d, without the effect of step inside", l.item, c.Ref, c.Token)
			}
		}
		if at > reached {
			reached, by = at, c
		}
		if c.Op != "undo" {
			continue
		}
		r.counts["undone"]++
		returned := false
		for _, o := range all {
			returned = returned || o.Op == "step" && o.Ref == c.Ref && o.Token == c.Of && o.Out == "ok"
			after := o.Op == "step" && place(o.Ref) > place(c.Ref)
			if after && !slices.ContainsFunc(all, func(u call) bool { return u.Op == "undo" && u.Ref == o.Ref && u.Out == "ok" && u.To <= c.At }) {
				r.fault("F2 undone backwards", "item %d undoes step %s with token %d before step %s, which has begun", l.item, c.Ref, c.Token, o.Ref)
			}
		}
		if c.Of != 0 && !returned {
			r.fault("F2 undone with its result", "item %d undoes step %s with the result of token %d, which the step has not returned", l.item, c.Ref, c.Of)
		}
	}
}

// checkUndone checks how a flow has ended.
func (h *history) checkUndone(r *report, i item, all []call, stored []step, inside int) {
	has := func(op, name string) bool {
		return slices.ContainsFunc(all, func(c call) bool { return c.Op == op && c.Ref == name && c.Out == "ok" })
	}
	undone := i.State&(durable.Dead|durable.Cancelled) != 0
	for _, c := range all {
		switch {
		case c.Op == "undo" && i.State == durable.Done:
			r.fault("F2 undone", "item %d is done, and step %s was undone with token %d", i.ID, c.Ref, c.Token)
		case c.Op == "step" && undone && i.job.Trip.Undo && !has("undo", c.Ref):
			r.fault("F2 undone", "item %d is in state %d, and step %s, which has begun with token %d, was not undone", i.ID, i.State, c.Ref, c.Token)
		}
	}
	for _, s := range stored {
		if undone && s.Compensates && s.State != durable.StepUndone {
			r.fault("F2 undone", "item %d is in state %d, and its step %s is %s", i.ID, i.State, s.Name, s.State)
		}
	}
	if i.State != durable.Done {
		return
	}
	for _, name := range []string{"first", "second", "third", "last"} {
		if !has("step", name) {
			r.fault("F1 steps run", "item %d is done, and its step %s has not returned", i.ID, name)
		}
	}
	if i.job.Trip.Tx && inside != 1 {
		r.fault("F1 steps run", "item %d is done, and its step inside has %d effects", i.ID, inside)
	}
}

// checkSignals checks what flows have taken.
func (h *history) checkSignals(r *report, lives map[effect]life, last map[int64]int, stored map[int64][]step) {
	signals := map[string]sent{}
	for _, s := range h.sent {
		signals[s.Unique] = s
	}
	answer := func(item int64) (step, bool) {
		n := slices.IndexFunc(stored[item], func(s step) bool { return s.Name == awaits })
		if n < 0 {
			return step{}, false
		}
		return stored[item][n], true
	}
	again := map[int64]bool{} // while an item is dead or cancelled, its flow takes nothing, and its deadline passes
	for _, c := range h.changes {
		again[c.Item] = again[c.Item] || c.Old&(durable.Dead|durable.Cancelled) != 0
	}
	told := map[string]int64{} // microseconds: when a signal was acknowledged: its transaction may stay open for long
	for _, c := range h.calls {
		if c.Op == "signal" && c.Out == "ok" {
			told[c.Unique] = c.To / 1000
		}
	}
	took := map[life]string{}
	for _, c := range h.calls {
		s, there := signals[c.Unique]
		l := lives[effect{c.Item, c.Token}]
		switch c.Op {
		case "signal":
			if r.counts["signals"]++; c.Out == "ok" && !there {
				r.fault("F3 no signal is lost", "signal %s was acknowledged and is not there", c.Unique)
			}
		case "took":
			if !there || s.Taken != c.Item || s.Item != c.Item && (s.Item != 0 || s.Key != h.items[c.Item].Key) {
				r.fault("F3 signals are taken once", "item %d has taken signal %s with token %d, but the store has %+v", c.Item, c.Unique, c.Token, s)
			}
			if before := cmp.Or(took[l], c.Unique); before != c.Unique {
				r.fault("F3 signals are taken once", "item %d has taken signals %s and %s for one step", c.Item, before, c.Unique)
			}
			took[l] = c.Unique
		case "late":
			r.counts["late"]++
			at, ok := answer(c.Item)
			if l.n != last[c.Item] || !ok || again[c.Item] {
				continue
			}
			if at.Signal != "" {
				r.fault("F3 late or not", "item %d was late with token %d, and has taken %s", c.Item, c.Token, at.Data)
			}
			for _, s := range h.sent {
				mine := s.Item == c.Item || s.Item == 0 && s.Key == h.items[c.Item].Key
				by, _ := answer(s.Taken)
				if to, ok := told[s.Unique]; ok && mine && s.At >= at.Enqueued && s.At < at.Until && to < at.Until && (s.Taken == 0 || s.Taken != c.Item && last[s.Taken] == 0 && by.At > at.Until) {
					r.fault("F3 late or not", "item %d was late with token %d at %d us; signal %s came at %d us, and was taken by item %d at %d us", c.Item, c.Token, at.Until, s.Unique, s.At, s.Taken, by.At)
				}
			}
		}
	}
	for _, s := range h.sent {
		if s.Taken == 0 {
			continue
		}
		r.counts["taken"]++
		if at, _ := answer(s.Taken); at.Data != fmt.Sprintf("%q", s.Unique) && last[s.Taken] == 0 {
			r.fault("F3 no signal is lost", "signal %s was taken by item %d, whose step is %+v", s.Unique, s.Taken, at)
		}
	}
}
