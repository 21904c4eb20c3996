package dynamicworkflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

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
	failures map[int]int // in a row
}

func newFailover(sink *signals.Sink, do ...func(context.Context, string) error) *failover {
	f := &failover{sink: sink, do: do, failures: map[int]int{}}
	sink.Subscribe("processor.mark.healthy:*", func(s signals.Signal) {
		sink.Because(s).Raise("processor.healthy:" + strings.TrimPrefix(s.Name, "processor.mark.healthy:"))
	})
	return f
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
		err := f.do[p-1](ctx, item)
		f.mu.Lock()
		f.failures[p]++
		if err == nil {
			f.failures[p] = 0
		}
		unhealthy := f.failures[p] == 3
		f.mu.Unlock()
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
