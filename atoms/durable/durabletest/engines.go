package durabletest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Pages checks that a page costs the same wherever it is, also for what is rare, in a queue that the engine has
// filled with 200,000 items: most have ended, 200 are in a lane and of a key that are rare.
func Pages(t *testing.T, store durable.Store, queue string) {
	const most, turns = 40, 3 // pages of a list; how often each is read
	for _, c := range []struct {
		name  string
		q     durable.Query
		items int
	}{
		{"all", durable.Query{}, 200_000}, {"done", durable.Query{State: durable.Done}, 169_400}, {"dead and halted", durable.Query{State: durable.Dead | durable.Halted}, 10_200},
		{"waiting", durable.Query{State: durable.Ready}, 10_000}, {"retrying", durable.Query{State: durable.Retry}, 200}, {"blocked", durable.Query{State: durable.Blocked}, 10_000},
		{"delayed", durable.Query{State: durable.Ready | durable.Retry, Delayed: true}, 0}, {"a rare lane", durable.Query{Lane: "rare"}, 200}, {"a class", durable.Query{Class: "stripe"}, 200}, {"a lane", durable.Query{Lane: "hot"}, 99_800},
		{"dead of a lane", durable.Query{Lane: "hot", State: durable.Dead}, 10_000}, {"a key", durable.Query{Key: "rare"}, 200}, {"a hot key", durable.Query{Key: "hot"}, 10_000}, {"no key", durable.Query{Key: "none"}, 0},
		{"an error", durable.Query{Err: "carrier"}, 2},
	} {
		var took []time.Duration
		items := 0
		for c.q.Limit = 100; ; {
			var page durable.Page
			fastest := time.Hour // what else the machine does makes a turn slower
			for range turns {
				began := time.Now()
				var err error
				if page, err = store.Items(t.Context(), queue, c.q); err != nil {
					t.Fatal(err)
				}
				fastest = min(fastest, time.Since(began))
			}
			took = append(took, fastest)
			items += len(page.Items)
			if c.q.After = page.Next; page.Next == "" || len(took) == most {
				break
			}
		}
		if len(took) < most && items != c.items {
			t.Errorf("%s: got %d items, want %d", c.name, items, c.items)
		}
		slices.Sort(took)
		t.Logf("%s: %d pages, median %v, nine of ten in %v, slowest %v", c.name, len(took), took[len(took)/2], took[len(took)*9/10], took[len(took)-1])
		// 8 ms on a machine that does nothing else; without an index, 36 ms and more. With Err, a page looks at 10,000 items.
		if c.q.Err == "" && took[len(took)/2] >= 25*time.Millisecond {
			t.Errorf("%s: half of the pages took more than %v", c.name, took[len(took)/2])
		}
	}
}

// Results checks that a result is stored by Finish, with the transaction, and if that is rolled back, with the end of
// the item. Another process, which has the store there, is woken when it is there. Finish calls Finish of the engine
// in a transaction, which it rolls back if the error is not nil.
func Results(t *testing.T, here, there durable.Store, finish func(ctx context.Context, rollBack error) error) {
	s := &suite{T: t, ctx: t.Context()}
	opts := durable.Options{Name: "q", Poll: 20 * time.Second, Lease: time.Minute}
	queue := func(store durable.Store) *durable.Queue[string] {
		return must[*durable.Queue[string]](s)(durable.New[string, string](store, nil, func(ctx context.Context, item string) error {
			if err := durable.Return(ctx, len(item)); err != nil {
				return err
			}
			if item == "finished" {
				return finish(ctx, nil)
			}
			finish(ctx, errors.New("rolled back"))
			return nil // it ends now, with its result
		}, opts))
	}
	q, other := queue(here), queue(there)
	ctx, stop := context.WithCancel(s.ctx)
	var run sync.WaitGroup
	run.Go(func() { s.ok(q.Run(ctx)) })
	for _, item := range []string{"finished", "not yet"} {
		id := must[durable.ItemID](s)(other.Enqueue(s.ctx, item))
		began := time.Now()
		s.equal("result", must[int](s)(durable.Wait[int](s.ctx, other, id)), len(item))
		s.equal("it was woken", time.Since(began) < 10*time.Second, true)
	}
	stop()
	run.Wait()
	s.ok(q.Close())
	s.ok(other.Close())
}
