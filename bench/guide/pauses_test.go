package guide_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

// Breakers pause customers and services of a queue in a file, beside a person: they neither shorten nor lift what the person has paused, and hold up
// no other customer or service. After each pause, the work goes on.
func TestBreakersBesideAPerson(t *testing.T) {
	type call struct{ Customer, Service string }
	path := filepath.Join(t.TempDir(), "calls.db")
	synctest.Test(t, func(t *testing.T) {
		file := core.Must(sqlitewriter.Open(t.Context(), path, sqlitewriter.Options{}))
		defer file.Close()
		store := core.Must(sqlite.Open(t.Context(), file, sqlite.Options{WakeEvery: -1}))
		var mu sync.Mutex
		var worker *durable.Queue[call]
		down, calls := map[string]bool{"ada": true, "pay": true}, map[call]int{}
		customerIsDown, serviceIsDown := errors.New("the customer is down"), errors.New("the service is down")
		ask := func(_ context.Context, c call) error {
			time.Sleep(10 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			calls[c]++
			switch {
			case down[c.Customer]:
				return customerIsDown
			case down[c.Service]:
				return serviceIsDown
			}
			return nil
		}
		pauses := func(counts error, what func(key string) durable.Pause) *circuitbreaker.Keyed {
			return core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{
				Rule:    breaker.Options{Threshold: 1, OpenFor: time.Minute},
				CountIf: func(err error) bool { return errors.Is(err, counts) },
				Pause: func(ctx context.Context, key string, d time.Duration, reason string) error {
					p := what(key)
					p.For, p.Reason, p.Auto = d, reason, true
					return worker.Pause(ctx, p)
				},
				Trial: func(ctx context.Context) bool { return durable.ClaimFrom(ctx).Trial },
			}))
		}
		customer := func(c call) string { return c.Customer }
		customers := pauses(customerIsDown, func(key string) durable.Pause { return durable.Pause{Key: key} })
		services := pauses(serviceIsDown, func(key string) durable.Pause { return durable.Pause{Class: key} })
		work := circuitbreaker.WrapKeyed(customers, customer, circuitbreaker.WrapKeyed(services, func(c call) string { return c.Service }, ask))
		queue := func(node string) *durable.Queue[call] {
			return core.Must(durable.New(store, customer, work, durable.Options{Name: "calls", Node: node, MaxConcurrency: 8, Backoff: time.Second, Poll: 5 * time.Second,
				Classes: []durable.Class{{Name: "mail"}, {Name: "pay"}, {Name: "fax"}}}))
		}
		worker = queue("worker")
		person := queue("person")
		defer worker.Close()
		defer person.Close()
		for _, c := range []call{{"ada", "mail"}, {"ada", "mail"}, {"bob", "mail"}, {"bob", "mail"}, {"cid", "mail"}, {"cid", "mail"}, {"dan", "pay"}, {"eve", "pay"}, {"fay", "fax"}} {
			core.Must(person.Class(c.Service).Enqueue(t.Context(), c))
		}
		pause := func(p durable.Pause) {
			p.For, p.Reason = 10*time.Minute, "works"
			if err := person.Pause(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		check := func(after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			var got []string
			for _, p := range core.Must(person.Stats(t.Context())).Pauses {
				got = append(got, p.String())
			}
			mu.Lock()
			defer mu.Unlock()
			for c, n := range calls {
				got = append(got, fmt.Sprint(c.Customer, " ", n))
			}
			slices.Sort(got)
			if text := fmt.Sprintf("%q", got); text != want {
				t.Errorf("got\n%s, want\n%s", text, want)
			}
		}

		pause(durable.Pause{Class: "fax"})
		go worker.Run(t.Context())
		time.Sleep(5 * time.Second) // the first calls of all others run; then one fails, and one succeeds
		pause(durable.Pause{Key: "ada"})
		pause(durable.Pause{Key: "cid"})
		const works = `"class fax is paused by person since 2000-01-01T00:00:00Z until 2000-01-01T00:10:00Z: works" `
		const keys = `"key ada is paused by person since 2000-01-01T00:00:05Z until 2000-01-01T00:10:05Z: works" "key cid is paused by person since 2000-01-01T00:00:05Z until 2000-01-01T00:10:05Z: works"]`
		check(25*time.Second, `["ada 1" "bob 2" "cid 1" `+works+`"class pay is paused by worker since 2000-01-01T00:00:10Z until 2000-01-01T00:01:10Z: breaker breaker: the service is down" "dan 1" "eve 1" `+keys)
		mu.Lock()
		down = nil
		mu.Unlock()
		check(8*time.Minute, `["ada 1" "bob 2" "cid 1" `+works+`"dan 2" "eve 2" `+keys)
		check(4*time.Minute, `["ada 3" "bob 2" "cid 2" "dan 2" "eve 2" "fay 1"]`)
		if s := core.Must(person.Stats(t.Context())); s.Done != s.Items {
			t.Error(s)
		}
	})
}

// A breaker for each of a few hosts, retries that wait for it, two pages of a host at once, and a rate for all: when a host
// fails, only its own pages wait, and all are fetched.
func TestBreakerForEachHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type page struct{ host, path string }
		sink := signals.NewSink(signals.SinkOptions{})
		var failed atomic.Bool
		fetch := func(ctx context.Context, p page) error {
			if p.host == "south" && !failed.Swap(true) {
				return errors.New("no answer")
			}
			return nil
		}
		byHost := map[string]core.Work[page]{}
		for _, host := range []string{"north", "south"} {
			breaker := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{
				Name: host, Threshold: 1, HalfOpen: 1, OpenFor: 20 * time.Millisecond}))
			defer breaker.Close()
			byHost[host] = circuitbreaker.Wrap(breaker, fetch)
		}
		r := core.Must(retry.New(retry.Options{Attempts: 12, RetryIf: func(err error) bool {
			return retry.Retryable(err) || errors.Is(err, circuitbreaker.ErrOpen)
		}}))
		work := func(ctx context.Context, p page) error { return byHost[p.host](ctx, p) }
		host := func(p page) string { return p.host }
		pages := core.Must(core.NewKeyedCoordinator(host, retry.Wrap(r, work), core.Options{
			MaxConcurrency: 16, MaxPerKey: 2, // two of each host
			Classes: []core.Class{{Name: "web", Rate: core.AtMost(50, time.Second)}}, // in all
		}))
		defer pages.Close()

		ctx := t.Context()
		for _, p := range []page{{"north", "/a"}, {"south", "/a"}, {"south", "/b"}, {"north", "/b"}} {
			core.Must(pages.Class("web").Enqueue(ctx, p))
		}
		coretest.Check(t, pages.Drain(ctx) == nil, "pages are not drained")
		coretest.Check(t, pages.Stats().Succeeded == 4, "got %v", pages.Stats())
	})
}
