package durabletest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

const anyState = ^durable.State(0)

// walk reads all pages, and sorts the items by ID.
func walk(s *suite, store durable.Store, q durable.Query) (all []durable.Item, err error) {
	for {
		page, err := store.Items(s.ctx, s.queue, q)
		if len(page.Items) > q.Limit {
			s.Fatalf("a page of %d items, more than %d", len(page.Items), q.Limit)
		}
		all = append(all, page.Items...)
		if q.After = page.Next; err != nil || q.After == "" {
			slices.SortFunc(all, func(a, b durable.Item) int { return cmp.Compare(a.ID, b.ID) })
			return all, err
		}
	}
}

// Pages have each item once that the query selects, while others come and go. A page that looks at many items in
// vain goes on.
func (s *suite) lists() {
	n := s.join(s.a, lanes(core.Lane{Name: "hot"}, core.Lane{Name: "slow"}))
	ids := s.add("a@hot", "a@hot", "b@slow", "@hot", "@slow", "c@hot")
	late := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Lane: "slow", Rank: 2, Delay: long})))[0].ID
	claimed := s.claims(n, 5, "a@hot", "@hot", "c@hot", "b@slow", "@slow")
	s.end(n, durable.End{Kind: durable.EndRetry, Err: "timeout of carrier", After: long}, durable.Retry, claimed[0])
	s.end(n, durable.End{Kind: durable.EndDead, Err: "100% wrong"}, durable.Dead, claimed[1])
	s.end(n, done, durable.Done, claimed[2])
	classed := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(durable.Insert{Key: "d", Lane: "hot", Class: "stripe"}, durable.Insert{Class: "stripe"})))
	of := list(classed[0].ID, classed[1].ID)
	must[[]durable.State](s)(s.a.Cancel(s.ctx, s.queue, of[:1], anyState, "left"))
	all, waits := slices.Concat(ids, list(late), of), durable.Ready|durable.Retry
	for _, c := range []struct {
		q    durable.Query
		want []durable.ItemID
	}{
		{durable.Query{}, all}, {durable.Query{Key: "a"}, ids[:2]}, {durable.Query{Lane: "hot"}, list(ids[0], ids[1], ids[3], ids[5], of[0])},
		{durable.Query{Class: "stripe"}, of}, {durable.Query{Class: "stripe", Lane: "hot"}, of[:1]}, {durable.Query{Class: "strip"}, nil}, {durable.Query{Class: "stripe", Key: "d"}, of[:1]},
		{durable.Query{Class: "stripe", State: durable.Ready}, of[1:]}, {durable.Query{Lane: "hot", Key: "d"}, of[:1]},
		{durable.Query{State: durable.Blocked}, ids[1:2]}, {durable.Query{State: durable.Running}, list(ids[2], ids[4])}, {durable.Query{State: durable.Retry}, ids[:1]},
		{durable.Query{State: durable.Ready | durable.Done, Key: "c"}, ids[5:6]}, {durable.Query{State: durable.Finished, Lane: "hot"}, list(ids[3], ids[5], of[0])},
		{durable.Query{State: waits, Delayed: true}, list(ids[0], late)}, {durable.Query{State: waits, Due: true}, of[1:]}, {durable.Query{State: durable.Ready, Delayed: true}, list(late)},
		{durable.Query{Err: "carrier"}, ids[:1]}, {durable.Query{Err: "%"}, ids[3:4]}, {durable.Query{MinAge: long}, nil}, {durable.Query{MaxAge: long}, all},
		{durable.Query{Key: "a", Lane: "slow"}, nil}, {durable.Query{State: durable.Halted}, nil}, {durable.Query{Key: "z"}, nil},
	} {
		for limit := range 4 {
			c.q.Limit = limit + 1
			var got []durable.ItemID
			for _, i := range must[[]durable.Item](s)(walk(s, s.b, c.q)) {
				got = append(got, i.ID)
			}
			s.equal(fmt.Sprintf("%+v", c.q), got, c.want)
			s.equal(fmt.Sprintf("count %+v", c.q), must[int](s)(s.a.Count(s.ctx, s.queue, c.q)), len(c.want))
		}
	}
	for from := 0; from <= durable.MaxLook; from += durable.MaxBatch {
		must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, slices.Repeat(list(durable.Insert{Lane: "many"}), durable.MaxBatch)))
	}
	q := durable.Query{Lane: "many", Err: "x", Limit: 10}
	page := must[durable.Page](s)(s.b.Items(s.ctx, s.queue, q))
	s.equal("looked in vain", list(len(page.Items) == 0, page.Next != ""), list(true, true))
	s.add("@many")
	q.After, q.Err = page.Next, ""
	rest := len(must[[]durable.Item](s)(walk(s, s.b, q)))
	s.equal("it goes on", rest > durable.MaxBatch && rest < 2*durable.MaxBatch, true)
	s.ok(ignore(s.a.Items(s.ctx, s.queue, durable.Query{Limit: 1})))
	_, err := s.a.Items(s.ctx, s.queue, durable.Query{After: "?"})
	s.equal("no cursor", err != nil, true)
}
