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
	forms := list(rateForm{200, 0.5, 3})
	if os.Getenv("EPHEMERAL_LONG") != "" {
		forms = append(forms, rateForm{100, 2, 0}, rateForm{400, 2, 0})
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
