// Command paidapi asks a paid API for two customers. The contract allows each of them a number
// of calls and a number of tokens a minute.
//
// Each customer is a key with two rates. Questions of people go before those of a batch. A
// call that takes long is made a second time, and the first answer counts. While the API is
// busy, no call is made.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/hedge"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The contract, for each customer. A minute takes 300 ms here, so that you need not wait.
const (
	minute              = 300 * time.Millisecond
	maxCalls, maxTokens = 12, 1200
)

type question struct{ customer, text string }

func (q question) Customer() string { return q.customer }
func (q question) Tokens() int      { return len(q.text)/4 + 60 } // the question, and at most 60 for the answer

func run(ctx context.Context, out io.Writer, api *fakeAPI) error {
	sink := signals.NewSink(signals.SinkOptions{})
	again := core.Must(retry.New(retry.Options{Sink: sink}))
	twice := core.Must(hedge.New(hedge.Options{Delay: 40 * time.Millisecond, MaxExtra: 0.2, Sink: sink}))

	ask := func(ctx context.Context, q question) (string, error) {
		op := core.OperationFrom(ctx)
		if hedge.Attempt(ctx) > 1 && sink.Has("api.busy") {
			return "", errors.New("no second call now") // the answer of the first one counts
		}
		if hedge.Attempt(ctx) > 1 || retry.Attempt(ctx) > 1 {
			op.Charge(0, q.Tokens()) // the atoms charge a further call, and this charges its tokens
		}
		answer, used, retryAfter, err := api.Ask(ctx, q)
		if retryAfter > 0 {
			sink.Hold("api.busy", "", retryAfter) // while it is held, no question starts
			return "", retry.After(errors.New("the API is busy"), retryAfter)
		}
		if err == nil {
			op.Charge(0, used-q.Tokens()) // unused tokens go back
		}
		return answer, err
	}
	questions, err := core.NewKeyedResultCoordinator(question.Customer, retry.WrapResult(again, hedge.WrapResult(twice, ask)), core.Options{
		Name: "questions", Sink: sink, MaxConcurrency: 16, MaxPerKey: 4, DeferOn: "api.busy",
		Lanes: []core.Lane{{Name: "person"}, {Name: "batch"}},
		// A rate lets Burst + PerSecond * minute pass in any minute: here 10 of 12 calls. The
		// rest is for calls that are on their way for different times.
		KeyRate:     core.Rate{PerSecond: maxCalls / 2 / minute.Seconds(), Burst: maxCalls / 3},
		KeyCostRate: core.Rate{PerSecond: maxTokens / 2 / minute.Seconds(), Burst: maxTokens / 3},
	})
	if err != nil {
		return err
	}
	defer questions.Close()

	// The questions of globex are long: it runs out of tokens, and acme runs out of calls.
	short, long := question{"acme", "Is this spam?"}, question{"globex", strings.Repeat("Summarize this. ", 20)}
	for range 12 {
		for _, q := range []question{short, long} {
			if _, err := questions.Lane("batch").Cost(q.Tokens()).Enqueue(ctx, q); err != nil {
				return err
			}
		}
	}
	longest, start := time.Duration(0), time.Now()
	for range 5 { // meanwhile, a person asks
		time.Sleep(minute / 4)
		asked := time.Now()
		if _, err := questions.Lane("person").Cost(short.Tokens()).Do(ctx, short); err != nil {
			return err
		}
		longest = max(longest, time.Since(asked))
	}
	for op := range questions.Operations(core.OperationQuery{Status: core.StatusPending, Limit: 1}) {
		why, _ := questions.Explain(op.ID)
		fmt.Fprintln(out, why)
	}
	if err := questions.Drain(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "people waited for %v at most, the batch for %v\n", longest.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	fmt.Fprintf(out, "%d answers, %d second calls, the contract was broken %d times\n", questions.Stats().Succeeded, twice.Stats().Hedged, api.broken)
	return nil
}

// A fakeAPI stands for the client of the API. It counts how often the contract was broken.
type fakeAPI struct {
	mu         sync.Mutex
	calls      []call
	busy, free time.Time // the API is busy between these
	broken     int
}

type call struct {
	question
	at time.Time
}

func (a *fakeAPI) Ask(ctx context.Context, q question) (answer string, used int, retryAfter time.Duration, err error) {
	a.mu.Lock()
	now, calls, tokens := time.Now(), 0, 0
	if a.calls = append(a.calls, call{q, now}); len(a.calls) == 12 {
		a.busy, a.free = now, now.Add(100*time.Millisecond)
	}
	for _, c := range a.calls {
		if c.customer == q.customer && now.Sub(c.at) < minute {
			calls, tokens = calls+1, tokens+c.Tokens()-20
		}
	}
	if calls > maxCalls || tokens > maxTokens || now.After(a.busy) && now.Before(a.free) {
		a.broken++
	}
	wait, takes := a.free.Sub(now), 20*time.Millisecond
	if len(a.calls)%8 == 0 {
		takes = time.Second // a slow server
	}
	a.mu.Unlock()
	if wait > 0 {
		return "", 0, wait, nil
	}
	select {
	case <-time.After(takes):
		return "yes", q.Tokens() - 20, 0, nil
	case <-ctx.Done():
		return "", 0, 0, context.Cause(ctx)
	}
}

func main() {
	if err := run(context.Background(), os.Stdout, &fakeAPI{}); err != nil {
		log.Fatal(err)
	}
}
