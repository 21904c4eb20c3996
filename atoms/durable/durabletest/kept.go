package durabletest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
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
	gone := s.join(s.a)
	s.equal("no note", s.claims(gone, 1, "a")[0].Note+s.item(id).Note, "")
	s.expire(s.a, gone)
	s.equal("lost", len(must[durable.Beaten](s)(s.b.Beat(s.ctx, alive, "")).Lost), 1)
	item := s.claims(alive, 1, "a")[0]
	must[[]durable.State](s)(s.a.Cancel(s.ctx, s.queue, list(id), anyState, "left"))
	s.end(alive, dead, durable.Cancelled, item)
	s.equal("again", must[[]durable.ItemID](s)(s.a.Again(s.ctx, s.queue, list(id), anyState)), list(id))
	s.end(alive, durable.End{Kind: durable.EndDead, Err: strings.Repeat("é", durable.MaxAttemptError+1)}, durable.Dead, s.claims(alive, 1, "a")...)
	got := attempts()
	s.equal("kinds", got[len(got)-4:], list("snoozed carrier is closed", "lost the lease of the node was lost", "cancelled left", "dead "+strings.Repeat("é", durable.MaxAttemptError)))
	s.equal("pruned", s.pruned(durable.Keep{}, 10), 1)
}

// ticks are never marked back, but by a reset.
func (s *suite) ticks() {
	store, ok := s.a.(interface {
		LastTick(ctx context.Context, schedule string) (time.Time, error)
		MarkTick(ctx context.Context, schedule string, tick time.Time) error
		ResetTick(ctx context.Context, schedule string, tick time.Time) error
	})
	if !ok {
		return // a store need not keep them
	}
	last := func() time.Time { return must[time.Time](s)(store.LastTick(s.ctx, s.queue)).UTC() }
	s.equal("none", last(), time.Time{})
	late, early := time.Date(2026, 3, 29, 2, 30, 0, 8000, time.UTC), time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ mark, want time.Time }{{early, early}, {late, late}, {late.Add(-time.Minute), late}} {
		s.ok(store.MarkTick(s.ctx, s.queue, c.mark))
		s.equal("marked", last(), c.want)
	}
	s.ok(store.ResetTick(s.ctx, s.queue, early))
	s.equal("reset", last(), early)
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

// sum counts what depths count, by place and state.
func sum(all []durable.Depth) map[durable.Depth]int {
	items := map[durable.Depth]int{}
	for _, d := range all {
		n := d.Items
		d.Waits = durable.Waits{Oldest: min(d.Oldest, 1)}
		items[d] += n
	}
	return items
}
