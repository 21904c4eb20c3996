package statuspage

import (
	"context"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// operationsSource shows a page of the operations of a coordinator. It is costly to find
// out why an operation waits, if many others are ahead of it. So each frame asks for a few.
type operationsSource struct {
	page        *Page
	coordinator *coordinator
	query       core.OperationQuery
	known       map[core.OperationID]*answer
	frames      int
}

// An answer says why an operation waits, and which frame has asked.
type answer struct {
	explained
	status core.Status
	frame  int // 0: not yet
}

type operationsFrame struct {
	Coordinator string           `json:"coordinator"`
	Operations  []operationRow   `json:"operations"`
	Next        core.OperationID `json:"next"` // value for after; 0: these are the last
}

func (o *operationsSource) frame(_ context.Context, e effort) (any, error) {
	found := slices.Collect(o.coordinator.is.Operations(o.query))
	o.explain(found, e.explain)
	shown := operationsFrame{Coordinator: o.coordinator.id, Operations: make([]operationRow, len(found))}
	for i := range found {
		row := o.page.operationRow(o.coordinator, &found[i])
		if a := o.known[row.ID]; a != nil {
			row.explained = a.explained
		}
		shown.Operations[i] = row
	}
	if len(found) == o.query.Limit {
		shown.Next = found[len(found)-1].ID
	}
	return shown, nil
}

// explain renews the oldest answers: at least one, and more until the budget is used up.
func (o *operationsSource) explain(found []core.Snapshot, budget time.Duration) {
	known := map[core.OperationID]*answer{}
	var ids []core.OperationID
	for i := range found {
		s := &found[i]
		if s.Status&core.StatusAlive == 0 {
			continue
		}
		a := o.known[s.ID]
		if a == nil || a.status != s.Status {
			a = &answer{status: s.Status}
		}
		known[s.ID] = a
		ids = append(ids, s.ID)
	}
	o.known = known
	o.frames++
	slices.SortStableFunc(ids, func(a, b core.OperationID) int { return known[a].frame - known[b].frame })
	start := time.Now()
	for i, id := range ids {
		if i > 0 && time.Since(start) > budget {
			return
		}
		known[id].explained, known[id].frame = o.page.explain(o.coordinator, id, false), o.frames
	}
}
