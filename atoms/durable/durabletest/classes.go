package durabletest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

func classes(c ...durable.Class) func(*durable.Node) {
	return func(n *durable.Node) { n.Classes = c }
}

// put inserts an item of a class for each key.
func (s *suite) put(class string, keys ...string) {
	s.Helper()
	var items []durable.Insert
	for _, key := range keys {
		items = append(items, durable.Insert{Key: key, Class: class, Data: []byte(class + key)})
	}
	s.ok(ignore(s.a.Insert(s.ctx, s.queue, items)))
}

// waits claims, and returns what is claimed and which classes have no room.
func (s *suite) waits(n durable.Node, ends ...durable.End) (t durable.Turned, got []string) {
	s.Helper()
	t = must[durable.Turned](s)(s.b.Turn(s.ctx, n, ends, durable.Want{Max: 10}))
	for _, i := range t.Items {
		got = append(got, string(i.Data))
	}
	for _, w := range t.Waits {
		got = append(got, "wait "+w.Class)
	}
	return t, got
}

// What SetClass sets counts for all nodes until it is reset, also for nodes that join later. A
// class that no node has keeps its values. A token does not come back.
func (s *suite) classes() {
	few := durable.Class{Name: "few", Limit: 2}
	rare := durable.Class{Name: "rare", Rate: core.Rate{PerSecond: 1e-3, Burst: 3}}
	n, other := s.join(s.a, classes(few, rare)), s.join(s.b)
	other.Classes = list(durable.Class{Name: "any"})
	s.put("few", "a", "a", "", "b")
	s.put("rare", "", "c", "d", "e")
	s.put("", "a", "f")
	s.equal("known by beats", must[durable.Beaten](s)(s.b.Beat(s.ctx, other, "")).Classed, true)
	t, got := s.waits(n)
	s.equal("in classes", got, list("fewa", "few", "rare", "rarec", "rared", "f", "wait few", "wait rare"))
	wait := t.Waits[1]
	s.equal("next token", wait.Next > 15*time.Minute && wait.Next <= 1000*time.Second && wait.Half == wait.Next && t.Waits[0].Next == 0, true)
	items := t.Items
	t, got = s.waits(other, endOf(items[3], back), endOf(items[0], durable.End{Kind: durable.EndDone, HandOver: true}))
	s.equal("given back, and handed over", list[any](got, string(t.Ends[1].Next.Data)), list[any](list("wait few", "wait rare"), "fewa"))
	x, _, err := s.b.Explain(s.ctx, s.queue, items[3].ID)
	s.ok(err)
	s.equal("explained", list[any](x.Class.Name, x.Class.Calls.Used, x.Class.Next.Sub(x.Time) > 15*time.Minute), list[any]("rare", int64(3), true))

	s.ok(s.a.SetClass(s.ctx, s.queue, durable.Class{Name: "few", Limit: 1}))
	n = s.join(s.a, classes(few, rare))
	t, got = s.waits(n, endOf(*t.Ends[1].Next, durable.End{Kind: durable.EndDone, HandOver: true}))
	s.equal("the set limit counts", list[any](got, t.Ends[0].Next == nil), list[any](list("a", "wait few", "wait rare"), true))
	s.ok(s.b.ResetClass(s.ctx, s.queue, "few"))
	_, got = s.waits(other)
	s.equal("reset", got, list("fewb", "wait rare"))
	s.ok(s.b.SetClass(s.ctx, s.queue, durable.Class{Name: "rare", Rate: core.Rate{PerSecond: 1e-3, Burst: 2}}))
	_, got = s.waits(other)
	s.equal("no tokens come from a change", got, list("wait rare"))
	s.ok(s.b.SetClass(s.ctx, s.queue, durable.Class{Name: "rare"}))
	_, got = s.waits(other)
	s.equal("no rate", got, list("rarec", "raree"))
	stats := must[durable.Stats](s)(s.b.Stats(s.ctx, s.queue)).Classes
	s.equal("stats", stats, list(durable.ClassStats{Name: "few", Running: 2, Limit: 2}, durable.ClassStats{Name: "rare", Running: 4, Set: true}))
}

// recorder keeps the times of all claims.
type recorder struct {
	durable.Store
	mu     *sync.Mutex
	claims *[]time.Time
}

func (r recorder) Turn(ctx context.Context, node durable.Node, ends []durable.End, want durable.Want) (durable.Turned, error) {
	t, err := r.Store.Turn(ctx, node, ends, want)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range t.Ends {
		if e.Next != nil {
			*r.claims = append(*r.claims, e.Next.Started)
		}
	}
	for _, i := range t.Items {
		*r.claims = append(*r.claims, i.Started)
	}
	return t, err
}

// rateForm is a class that five processes share. Without a limit they have to reach the rate.
type rateForm struct {
	rate, seconds float64
	limit         int
}

// Five processes share a class with a limit and a rate; some stop and start. By the clock of the
// store, there are never more claims than the rate allows, and in the long form hardly fewer. A machine
// that has much to do may stop a process for long, so the second promise has three attempts.
func (s *suite) rates() {
	forms := list(rateForm{200, 1, 3})
	if os.Getenv("EPHEMERAL_LONG") != "" {
		forms = append(forms, rateForm{100, 3, 0}, rateForm{1000, 3, 0})
	}
	for n, f := range forms {
		share := 0.0
		for attempt := 0; attempt < 3 && share < 0.95; attempt++ {
			if share = s.shareOf(fmt.Sprint(s.queue, n, "-", attempt), f); f.limit > 0 {
				share = 1
			}
		}
		if share < 0.95 {
			s.Errorf("%g a second: claims have %.1f %% of the rate", f.rate, 100*share)
		}
	}
}

// shareOf returns how much of the rate the claims of five processes have.
func (s *suite) shareOf(name string, f rateForm) float64 {
	rate, seconds := f.rate, f.seconds
	class := durable.Class{Name: "c", Limit: f.limit, Rate: core.Rate{PerSecond: rate, Burst: int(rate / 5)}}
	items := class.Rate.Burst + int(rate*seconds)
	opts := durable.Options{Name: name, Classes: []durable.Class{class}, MaxConcurrency: 50, Poll: 100 * time.Millisecond, Backoff: 1, MaxAttempts: -1}
	var (
		mu     sync.Mutex
		claims []time.Time
		all    sync.WaitGroup
		ended  = make(chan struct{})
		left   = items
	)
	body := func(_ context.Context, n int) error {
		time.Sleep(rand.N(5 * time.Millisecond))
		if rand.N(20) == 0 {
			return errors.New("durabletest: once more")
		}
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			close(ended)
		}
		return nil
	}
	run := func(store durable.Store, stops bool) {
		defer all.Done()
		for again := true; again; {
			q, err := durable.New(recorder{store, &mu, &claims}, func(n int) string { return fmt.Sprint(n % 997) }, body, opts)
			s.ok(err)
			ctx, cancel := context.WithCancel(s.ctx)
			if stops {
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			stop := context.AfterFunc(s.ctx, cancel)
			go func() {
				<-ended
				cancel()
			}()
			s.ok(q.Run(ctx))
			stop()
			s.ok(q.Close())
			select {
			case <-ended:
				again = false
			default:
			}
		}
	}
	producer := core.Must(durable.New(s.a, func(n int) string { return fmt.Sprint(n % 997) }, body, opts))
	for first := 0; first < items; first += durable.MaxBatch {
		var some []int
		for i := first; i < min(items, first+durable.MaxBatch); i++ {
			some = append(some, i)
		}
		s.ok(ignore(producer.Class("c").EnqueueAll(s.ctx, some)))
	}
	all.Add(5)
	for p := range 5 {
		go run(s.open(), p == 0)
	}
	for running := true; running; {
		stats, err := s.b.Stats(s.ctx, opts.Name)
		s.ok(err)
		if len(stats.Classes) > 0 && f.limit > 0 && stats.Classes[0].Running > f.limit {
			s.Errorf("%d run, more than %d", stats.Classes[0].Running, f.limit)
		}
		select {
		case <-ended:
			running = false
		case <-time.After(50 * time.Millisecond):
		}
	}
	all.Wait()
	s.ok(producer.Close())
	slices.SortFunc(claims, time.Time.Compare)
	s.ok(lawOfRates(class.Rate, claims))
	claims = claims[:len(claims)*9/10] // while enough items wait
	took := claims[len(claims)-1].Sub(claims[0]).Seconds()
	share := float64(len(claims)-class.Rate.Burst) / took / rate
	s.Logf("%g a second: %d claims in %.2f s, %.1f %% of the rate", rate, len(claims), took, 100*share)
	return share
}

// lawOfRates checks that in any time T there are at most rate x T + burst claims.
func lawOfRates(rate core.Rate, claims []time.Time) error {
	for i, first := range claims {
		for j := i + rate.Burst; j < len(claims); j++ {
			if span := claims[j].Sub(first); float64(j-i+1) > rate.PerSecond*span.Seconds()+float64(rate.Burst)+1e-6 {
				return fmt.Errorf("durabletest: %d claims in %v, with a rate of %g and a burst of %d", j-i+1, span, rate.PerSecond, rate.Burst)
			}
		}
	}
	return nil
}
