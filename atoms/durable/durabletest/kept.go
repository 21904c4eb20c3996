package durabletest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// The last attempts of an item are kept until it is pruned, with the reasons of snoozes.
func (s *suite) attempts() {
	alive := s.join(s.a)
	id := s.add("a")[0]
	attempts := func() (words []string) {
		x, _, err := s.b.Explain(s.ctx, s.queue, id)
		s.ok(err)
		for n, a := range x.Attempts {
			if a.Ended.Before(a.Started) || a.Started.IsZero() || a.Node == "" || n > 0 && a.Token <= x.Attempts[n-1].Token {
				s.Fatalf("attempts %+v", x.Attempts)
			}
			words = append(words, fmt.Sprint(a.Kind, " ", a.Err))
		}
		return words
	}
	s.equal("none", len(attempts()), 0)
	for n := range durable.MaxAttempts + 1 {
		item := s.claims(alive, 1, "a")[0]
		s.end(alive, durable.End{Kind: durable.EndRetry, Err: fmt.Sprint(n)}, durable.Retry, item)
		s.equal("twice", must[[]durable.Ended](s)(endAll(s, s.b, alive, endOf(item, retry)))[0].Outcome, durable.OutcomeAlready)
	}
	s.equal("the last ones", attempts()[0], "retry 1")
	s.equal("how many", len(attempts()), durable.MaxAttempts)
	s.end(alive, back, durable.Ready, s.claims(alive, 1, "a")...)
	s.end(alive, durable.End{Kind: durable.EndSnoozed, Err: "carrier is closed"}, durable.Ready, s.claims(alive, 1, "a")...)
	s.equal("note", list(s.item(id).Note, s.item(id).Err), list("carrier is closed", fmt.Sprint(durable.MaxAttempts)))
	gone := s.join(s.a, func(n *durable.Node) { n.Lease = short })
	s.equal("no note", s.claims(gone, 1, "a")[0].Note+s.item(id).Note, "")
	s.pass()
	s.equal("lost", len(must[durable.Beaten](s)(s.b.Beat(s.ctx, alive, "")).Lost), 1)
	item := s.claims(alive, 1, "a")[0]
	must[[]durable.State](s)(s.a.Cancel(s.ctx, s.queue, list(id), anyState, "left"))
	s.end(alive, back, durable.Cancelled, item)
	s.equal("again", must[[]durable.ItemID](s)(s.a.Again(s.ctx, s.queue, list(id), anyState)), list(id))
	s.end(alive, durable.End{Kind: durable.EndDead, Err: strings.Repeat("é", durable.MaxAttemptError+1)}, durable.Dead, s.claims(alive, 1, "a")...)
	got := attempts()
	s.equal("kinds", got[len(got)-4:], list("snoozed carrier is closed", "lost the lease of the node was lost", "cancelled left", "dead "+strings.Repeat("é", durable.MaxAttemptError)))
	s.equal("pruned", s.pruned(durable.Keep{}, 10), 1)
}

// Items move to a lane if no order of a key can change: those without a key, or all of a key that wait.
func (s *suite) move() {
	n := s.join(s.a, lanes(core.Lane{Name: "hot"}, core.Lane{Name: "slow"}))
	ids := s.add("a@slow", "a@slow", "a@slow", "@slow", "b@slow")
	s.ok(ignore(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Lane: "slow", Class: "stripe", Rank: 2}))))
	move := func(ids []durable.ItemID, lane string, rank int) ([]durable.ItemID, error) {
		return s.b.Move(s.ctx, s.queue, ids, lane, rank)
	}
	for _, part := range [][]durable.ItemID{ids[:2], ids[1:4], ids[2:5]} {
		_, err := move(part, "hot", 1)
		s.equal("a part of a key", errors.Is(err, durable.ErrOrder) && strings.Contains(err.Error(), `"a"`), true)
	}
	s.claims(n, 1, "a@slow")
	s.equal("unchanged", list(s.item(ids[3]).Lane, s.item(ids[1]).Lane), list("slow", "slow"))
	moved, err := move(list(ids[3], ids[2], ids[1], ids[0], ids[1], 1<<60), "hot", 1)
	s.ok(err)
	s.equal("what waits", moved, ids[1:4])
	_, err = move(ids[1:2], "slow", 2)
	s.equal("back again, in part", errors.Is(err, durable.ErrOrder), true)
	s.equal("some are there", must[[]durable.ItemID](s)(move(ids[1:2], "hot", 1)), ids[1:2])
	last := s.add("a@slow")
	s.equal("the others are there", must[[]durable.ItemID](s)(move(last, "hot", 1)), last)
	s.equal("other queue", len(must[[]durable.ItemID](s)(s.a.Move(s.ctx, s.queue+"2", ids, "x", 0))), 0)
	s.claims(n, 1, "@slow") // it is in the higher lane now
	classed := must[durable.Page](s)(s.a.Items(s.ctx, s.queue, durable.Query{Class: "stripe"})).Items[0]
	s.equal("moved", len(must[[]durable.ItemID](s)(move(list(classed.ID), "hot", 1))), 1)
	classed = s.item(classed.ID)
	s.equal("it keeps its class", list(classed.Lane, classed.Class), list("hot", "stripe"))
}

// A result is stored with the end of its item, if that is accepted, and kept as long as the item.
func (s *suite) results() {
	n := s.join(s.a)
	ids := s.add("a", "a", "")
	result := func(id durable.ItemID) string {
		r, ok, err := s.b.Result(s.ctx, s.queue, id)
		s.ok(err)
		return fmt.Sprint(ok, " ", r.State, " ", r.Err, " ", string(r.Data))
	}
	with := func(data string) durable.End {
		return durable.End{Kind: durable.EndDone, Result: []byte(data), HandOver: true}
	}
	claimed := s.claims(n, 10, "a", "")
	s.equal("running", result(ids[0]), "true running  ")
	late := endOf(claimed[0], with("0"))
	late.Token--
	s.equal("fenced", must[[]durable.Ended](s)(endAll(s, s.a, n, late))[0].Outcome, durable.OutcomeFenced)
	ends := must[[]durable.Ended](s)(endAll(s, s.a, n, endOf(claimed[0], with(`{"a":1}`)), endOf(claimed[1], dead)))
	s.equal("a second end", must[[]durable.Ended](s)(endAll(s, s.a, n, endOf(claimed[0], with("2"))))[0].Outcome, durable.OutcomeAlready)
	s.end(n, done, durable.Done, *ends[0].Next)
	s.equal("results", list(result(ids[0]), result(ids[1]), result(ids[2]), result(1<<60)), list(`true done  {"a":1}`, "true done  ", "true dead dead ", "false none  "))
	s.equal("pruned", s.pruned(durable.Keep{}, 10), 3)
	s.equal("gone", result(ids[0]), "false none  ")
}

// Depths count what has not ended, by place and state.
func (s *suite) depths() {
	n := s.join(s.a, lanes(core.Lane{Name: "hot"}))
	s.add("a@hot", "a@hot", "a@hot", "@slow", "@hot")
	s.ok(ignore(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Lane: "slow", Delay: long}, durable.Insert{Lane: "slow", Class: "stripe"}))))
	s.end(n, done, durable.Done, s.claims(n, 2, "a@hot", "@hot")[1])
	time.Sleep(2 * time.Microsecond)
	got := map[string]int{}
	for _, d := range must[[]durable.Depth](s)(s.b.Depths(s.ctx, s.queue)) {
		if d.Oldest <= 0 || d.Oldest > long {
			s.Fatalf("%+v", d)
		}
		got[fmt.Sprintf("%q %v %v", d.Place, d.State, d.Delayed)] += d.Items
	}
	s.equal("depths", got, map[string]int{`"hot" blocked false`: 2, `"hot" running false`: 1, `"slow" ready false`: 1, `"slow" ready true`: 1, `"\x01stripe\x01slow" ready false`: 1})
}

// attempts translates the tokens of attempts.
func (d *differ) attempts(all []durable.Attempt, ours bool) (same []durable.Attempt) {
	for _, a := range all {
		if ours {
			a.Token = d.tokens[a.Token]
		}
		a.Started, a.Ended = time.Time{}, time.Time{}
		same = append(same, a)
	}
	return same
}
