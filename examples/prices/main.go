// Command prices is an HTTP service that asks a carrier for prices. It has a cache, a breaker,
// and a limit for calls to the carrier. A request that waits too long gets status 503, and the
// answer says why: what the library knows about the operation that the request waits for.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

const (
	patience = 100 * time.Millisecond // how long a request waits
	openFor  = 500 * time.Millisecond // how long the carrier is left alone after two failures
)

type service struct {
	breaker *circuitbreaker.Breaker
	calls   *core.ResultCoordinator[string, int]
	prices  *slidingcache.Cache[string, int]
}

// newService makes a service. The function ask asks the carrier for the price of a city.
func newService(ask core.ResultWork[string, int]) (s *service, err error) {
	s, sink := &service{}, signals.NewSink(signals.SinkOptions{})
	s.breaker, err = circuitbreaker.New(sink, circuitbreaker.Options{Name: "carrier", Threshold: 2, OpenFor: openFor, HalfOpen: 1})
	if err != nil {
		return nil, err
	}
	s.calls, err = core.NewResultCoordinator(circuitbreaker.WrapResult(s.breaker, ask), core.Options{
		Name: "calls", Sink: sink, MaxConcurrency: 8, Timeout: time.Second,
		Classes: []core.Class{{
			Name:    "carrier",
			Limit:   1,                           // calls at once
			Rate:    core.Rate{PerSecond: 100},   // calls a second
			DeferOn: "circuit.open.carrier",      // while the breaker is open, calls wait
			TrialOn: "circuit.half_open.carrier", // then there is one call, to try
		}},
	})
	if err != nil {
		return nil, errors.Join(err, s.breaker.Close())
	}
	// Requests for the same city share a call.
	s.prices, err = slidingcache.New(s.calls.Class("carrier").Do, slidingcache.Options[string]{Name: "prices", Absolute: time.Minute, Sink: sink})
	if err != nil {
		return nil, errors.Join(err, s.calls.Close(), s.breaker.Close())
	}
	return s, nil
}

// ServeHTTP answers GET /price/{city}.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	city := r.PathValue("city")
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer time.AfterFunc(patience, func() { cancel(s.late(city)) }).Stop()

	price, err := s.prices.Get(ctx, city)
	if late, ok := errors.AsType[lateError](err); ok {
		http.Error(w, late.Error(), http.StatusServiceUnavailable)
	} else if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	} else {
		fmt.Fprintln(w, price)
	}
}

// A lateError says why there is no price yet. In JSON, it has all details.
type lateError struct{ core.Explanation }

func (e lateError) Error() string { return e.String() }

func (s *service) late(city string) error {
	for load := range s.prices.Loads(core.OperationQuery{Key: city, Status: core.StatusAlive}) {
		why, _ := s.prices.Explain(load.ID)
		return lateError{why}
	}
	return context.DeadlineExceeded // it is there now
}

func (s *service) Close() error {
	return errors.Join(s.prices.Close(), s.calls.Close(), s.breaker.Close())
}

// show asks the service while the carrier works, is busy, and is down.
func show(out io.Writer) error {
	var down atomic.Bool
	s, err := newService(func(ctx context.Context, city string) (int, error) {
		if down.Load() {
			return 0, errors.New("the carrier does not answer")
		}
		if city == "Rome" { // the carrier needs long for it
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}
		return 490, nil
	})
	if err != nil {
		return err
	}
	defer s.Close()
	mux := http.NewServeMux() // in your program: http.ListenAndServe("localhost:8080", mux)
	mux.Handle("GET /price/{city}", s)
	get := func(city string) {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/price/"+city, nil))
		fmt.Fprint(out, city, " ", answer.Code, " ", answer.Body)
	}

	get("Vienna")
	rome, err := s.calls.Class("carrier").Submit(context.Background(), "Rome") // has the only slot
	if err != nil {
		return err
	}
	get("Paris")
	s.calls.Cancel(rome.ID(), context.Canceled)
	if err := s.calls.WaitIdle(context.Background()); err != nil {
		return err
	}

	down.Store(true)
	get("Graz")
	get("Linz")
	get("Vienna") // is in the cache
	get("Bern")   // waits for the breaker, and does not burden the carrier

	down.Store(false)
	time.Sleep(openFor)
	get("Bern")
	return nil
}

func main() {
	if err := show(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
