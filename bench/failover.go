package bench

import (
	"context"
	"errors"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/priorityprocessor"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// failoverRows measure an item that does nothing, with a primary and a backup, beside a
// direct call of the function. The benchmark in atoms/priorityprocessor shows how long
// a failover takes at p99.
func failoverRows() []Row {
	var (
		works core.Work[int] = func(context.Context, int) error { return nil }
		err                  = errors.New("down")
		fails core.Work[int] = func(context.Context, int) error { return err }
	)
	direct := Side{"direct", 0, func() Body { return doing(works) }}
	return []Row{
		{Name: "primary=works", Sides: []Side{throughFailover("ours", works, works, false, 0), direct}},
		{Name: "primary=unhealthy", Sides: []Side{throughFailover("ours", fails, works, true, 0), direct}},
		// The primary fails each item, which raises two signals. The backup does the item.
		{Name: "primary=fails", MaxAllocs: 8, Sides: []Side{
			throughFailover("ours", fails, works, false, 0),
			throughFailover("ours-age=none", fails, works, false, -1),
			direct,
		}},
	}
}

// throughFailover processes items with a primary whose health does not change.
func throughFailover(name string, primary, backup core.Work[int], unhealthy bool, age time.Duration) Side {
	return Side{name, 0, func() Body {
		f := core.Must(priorityprocessor.New([]priorityprocessor.Processor[int]{
			{Name: "primary", Priority: 1, Do: primary},
			{Name: "backup", Priority: 2, Do: backup},
		}, priorityprocessor.Options{
			Sink: signals.NewSink(signals.SinkOptions{MaxAge: age}), Threshold: -1, ProbeAfter: -1,
		}))
		if unhealthy {
			f.MarkUnhealthy("primary")
		}
		body := doing(f.Do)
		body.Close = func() { check(f.Close()) }
		return body
	}}
}

// doing runs work for one item after the other.
func doing(work core.Work[int]) Body {
	return Body{Run: func(n int) {
		ctx := context.Background()
		for i := range n {
			check(work(ctx, i))
		}
	}}
}
