package durabletest

import (
	"context"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// If the body ends its item in a transaction of its own, as Finish does, the next item of the key starts at once, not
// at the next Poll.
func (s *suite) finished() {
	started := make(chan string)
	q := must[*durable.Queue[string]](s)(durable.New(s.a, func(string) string { return "a" }, func(ctx context.Context, item string) error {
		started <- item
		c := durable.ClaimFrom(ctx)
		end := durable.End{ID: c.ID, Key: c.Key, Token: c.Token, Kind: durable.EndDone, Patience: time.Minute} // a turn of the queue may have the lock of the key
		ended, err := endAll(s, s.b, durable.Node{Queue: c.Queue}, end)
		s.equal("ended by its body", ended, list(durable.Ended{Outcome: durable.OutcomeEnded, State: durable.Done, Promoted: item != "c"}))
		durable.MarkFinished(ctx)
		return err
	}, durable.Options{Name: s.queue, Poll: long, Lease: 3 * long, MaxConcurrency: 2}))
	must[[]durable.ItemID](s)(q.EnqueueAll(s.ctx, list("a", "b", "c")))
	var run sync.WaitGroup
	run.Go(func() { s.ok(q.Run(s.ctx)) })
	for _, want := range list("a", "b", "c") {
		select {
		case item := <-started:
			s.equal("started", item, want)
		case <-time.After(time.Minute): // far less than Poll
			s.Error("the next item of the key waits for Poll:", want)
		}
	}
	s.ok(q.Stop(s.ctx))
	run.Wait()
	s.ok(q.Close())
}
