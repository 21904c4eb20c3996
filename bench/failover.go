package bench

import (
	"context"
	"errors"

	"github.com/ephemeralgo/ephemeral/atoms/priorityprocessor"
	"github.com/ephemeralgo/ephemeral/core"
)

// failoverRows: an item that does nothing by way of a primary and a backup, beside
// calling the one that does it. How long failover takes, at p99, is shown by the
// benchmark in atoms/priorityprocessor.
func failoverRows() []Row {
	var (
		works core.Work[int] = func(context.Context, int) error { return nil }
		err                  = errors.New("down")
		fails core.Work[int] = func(context.Context, int) error { return err }
	)
	direct := Side{"direct", 0, func() Body { return doing(works) }}
	return []Row{
		{Name: "primary=works", Sides: []Side{throughFailover(works, works, false), direct}},
		{Name: "primary=unhealthy", Sides: []Side{throughFailover(fails, works, true), direct}},
		// Each item is failed by the primary, which raises two signals, and done
		// by the backup.
		{Name: "primary=fails", MaxAllocs: 8, Sides: []Side{throughFailover(fails, works, false), direct}},
	}
}

// throughFailover does items by way of a primary that stays as healthy as it is.
func throughFailover(primary, backup core.Work[int], unhealthy bool) Side {
	return Side{"ours", 0, func() Body {
		f := core.Must(priorityprocessor.New([]priorityprocessor.Processor[int]{
			{Name: "primary", Priority: 1, Do: primary},
			{Name: "backup", Priority: 2, Do: backup},
		}, priorityprocessor.Options{Threshold: -1, ProbeAfter: -1}))
		if unhealthy {
			f.MarkUnhealthy("primary")
		}
		body := doing(f.Do)
		body.Close = func() { check(f.Close()) }
		return body
	}}
}

// doing does items, one after the other.
func doing(work core.Work[int]) Body {
	return Body{Run: func(n int) {
		ctx := context.Background()
		for i := range n {
			check(work(ctx, i))
		}
	}}
}
