package statuspage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// maxMatches is how many operations a view counts.
const maxMatches = 1000

// operationsSource shows a page of the operations of a coordinator, or those of several in which a text is found. It
// is costly to find out why an operation waits, if many others are ahead of it. So each frame asks for a few.
type operationsSource struct {
	page    *Page
	in      []*coordinator
	query   core.OperationQuery
	text    string // to find; "": there is no search, and one coordinator
	known   map[core.OperationID]*answer
	frames  int
	matches int
	last    core.OperationID // that matches, if there are no more
	more    bool
	recount time.Time // the matches are not counted again before
}

// A hit is an operation to show.
type hit struct {
	in *coordinator
	core.Snapshot
}

// An answer says why an operation waits, and which frame has asked.
type answer struct {
	explained
	in     *coordinator
	status core.Status
	frame  int // 0: not yet
}

func (p *Page) operations(q query) (source, error) {
	in, err := p.in(q, q.text != "")
	o := &operationsSource{page: p, in: in, query: q.OperationQuery, text: q.text}
	return o.frame, err
}

func (o *operationsSource) frame(_ context.Context, e effort) (any, error) {
	of := "" // all
	if len(o.in) == 1 {
		of = o.in[0].id
	}
	found, next := o.found()
	o.explain(found, e.explain)
	rows := []operationRow{}
	for i := range found {
		row := o.page.operationRow(found[i].in, &found[i].Snapshot)
		if a := o.known[row.ID]; a != nil {
			row.explained = a.explained
		}
		rows = append(rows, row)
	}
	return object{"coordinator": of, "operations": rows, "matches": o.matches, "more": o.more, "next": next}, nil
}

// found returns the operations to show, and the value of after for the next page, or 0.
func (o *operationsSource) found() (found []hit, next core.OperationID) {
	if o.text != "" {
		return o.search(), 0
	}
	found = make([]hit, 0, o.query.Limit)
	for s := range o.in[0].is.Operations(o.query) {
		found = append(found, hit{o.in[0], s})
	}
	o.count(len(found))
	if n := len(found); n == o.query.Limit && (o.more || found[n-1].ID != o.last) {
		next = found[n-1].ID
	}
	return found, next
}

// count counts what matches the query. If that is costly, it does so at less than a thousandth of the time.
func (o *operationsSource) count(shown int) {
	start := time.Now()
	if shown < o.query.Limit && o.query.After == 0 {
		o.matches, o.more = shown, false
	} else if !start.Before(o.recount) {
		all, n := o.query, 0
		all.After, all.Limit = 0, maxMatches+1
		for s := range o.in[0].is.Operations(all) {
			n, o.last = n+1, s.ID
		}
		o.matches, o.more = min(n, maxMatches), n > maxMatches
		o.recount = time.Now().Add(max(2*time.Second, 1000*time.Since(start)))
	}
}

// search returns the operations whose id is the text, or that have it in the key or error that is shown.
func (o *operationsSource) search() (found []hit) {
	o.matches, o.more = 0, false
	for _, c := range o.in {
		n := 0
		err := o.page.guarded(func() {
			all := findOperations(c.is, o.text, o.query, o.page.redacted, func(s core.Snapshot) bool {
				if n++; n <= o.query.Limit {
					found = append(found, hit{c, s})
				}
				return n <= maxMatches
			})
			o.more = o.more || !all
		})
		o.matches, o.more = o.matches+n, o.more || err != ""
	}
	o.matches, o.more = min(o.matches, maxMatches), o.more || o.matches > maxMatches
	slices.SortStableFunc(found, func(a, b hit) int {
		if o.query.NewestFirst {
			a, b = b, a
		}
		return a.Enqueued.Compare(b.Enqueued)
	})
	return found[:min(len(found), o.query.Limit)]
}

// explain renews the oldest answers: at least one, and more until the budget is used up. Operations without an answer
// have a larger budget. After that, a pending one is explained by the counters of its coordinator.
func (o *operationsSource) explain(found []hit, budget time.Duration) {
	known := map[core.OperationID]*answer{}
	var ids []core.OperationID
	for i := range found {
		s := &found[i]
		if s.Status&core.StatusAlive == 0 {
			continue
		}
		a := o.known[s.ID]
		if a == nil || a.status != s.Status {
			a = &answer{in: s.in, status: s.Status}
		}
		known[s.ID] = a
		ids = append(ids, s.ID)
	}
	o.known = known
	o.frames++
	slices.SortStableFunc(ids, func(a, b core.OperationID) int { return known[a].frame - known[b].frame })
	start := time.Now()
	for i, id := range ids {
		a, spent := known[id], time.Since(start)
		switch fresh := a.frame == 0; {
		case i == 0, spent <= budget, fresh && spent <= first.explain:
			a.explained, a.frame = o.page.explain(a.in, id, false), o.frames
		case !fresh:
			return
		case a.status == core.StatusPending:
			a.explained = guess(a.in.is.Stats())
		}
	}
}

// guess says why operations wait, as far as the counters tell.
func guess(s core.Stats) explained {
	w := waitRow{Kind: core.ReasonLimit, Text: fmt.Sprintf("%d of %d slots are taken, and %d items are pending", s.Running, s.Limit, s.Pending)}
	if s.Paused {
		w.Kind, w.Text = core.ReasonPaused, "the coordinator is paused"
	}
	return explained{w.Text, []waitRow{w}}
}
