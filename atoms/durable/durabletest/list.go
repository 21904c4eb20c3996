package durabletest

import (
	"cmp"
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
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

// A page that looks at many items in vain goes on.
func (s *suite) lists() {
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
