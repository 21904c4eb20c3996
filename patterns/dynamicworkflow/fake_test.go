package dynamicworkflow_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errDown = errors.New("down")

// failover does items like the Failover of atoms/priorityprocessor: first with the priority
// that is held for the entity, then with the next ones.
type failover struct {
	sink *signals.Sink
	do   []func(ctx context.Context, item string) error // by priority - 1

	mu       sync.Mutex
	failures map[int]int       // in a row
	down     map[int]time.Time // since when a priority is unhealthy
}

func newFailover(sink *signals.Sink, do ...func(context.Context, string) error) *failover {
	return &failover{sink: sink, do: do, failures: map[int]int{}, down: map[int]time.Time{}}
}

func (f *failover) Do(ctx context.Context, item string) error {
	op := core.OperationFrom(ctx)
	start := 0
	for i := range f.do {
		for range f.sink.Sense(signals.Query{Pattern: fmt.Sprint("route.priority.", i+1), Key: op.Key()}) {
			start = i
		}
	}
	for n := range f.do {
		p := 1 + (start+n)%len(f.do)
		if n > 0 {
			op.Raise(fmt.Sprintf("failover.requested:pri%d->pri%d", 1+(start+n-1)%len(f.do), p))
		}
		began := time.Now()
		err := f.do[p-1](ctx, item)
		f.mu.Lock()
		f.failures[p]++
		if err == nil {
			f.failures[p] = 0
		}
		since, isDown := f.down[p]
		unhealthy, restored := !isDown && f.failures[p] >= 3, isDown && err == nil && began.After(since)
		if unhealthy {
			f.down[p] = time.Now()
		} else if restored {
			delete(f.down, p)
		}
		f.mu.Unlock()
		if restored {
			f.sink.Raise(fmt.Sprint("processor.healthy:pri", p))
		}
		if err == nil {
			return nil
		}
		op.Raise(fmt.Sprint("processing.failed:pri", p))
		if unhealthy {
			f.sink.Raise(fmt.Sprint("processor.unhealthy:pri", p))
		}
	}
	return errDown
}
