// Package llm is the scenario of a pipeline on language models: it labels support messages.
// The models are a fake server on a loopback port. The server counts for itself, so that it
// can say whether a limit was exceeded.
//
// A message goes through checks from cheap to expensive, and stops at the first one that has
// a label for it (atoms/waveorchestrator):
//
//	rules      looks at the text
//	embedding  gets a vector, and compares it with those of known messages; one request
//	           gets the vectors of several messages (atoms/batching)
//	model      asks the provider alpha, or beta if alpha fails (atoms/priorityprocessor)
//
// A provider limits the number of requests and the number of tokens in a window. Each request
// takes from both limits at once (Group of atoms/ratelimit). It reserves the tokens that it
// may use, and adjusts the reservation when the answer says how many it has used: a model
// uses less, the embedder more. A request that gets a Retry-After is sent again after that
// time (atoms/retry), and meanwhile the limiter stops all other requests to that provider.
//
// # In your program
//
//   - Take the limits from your account, and a minute as window. The burst for tokens must
//     hold the largest request. If several processes use one account, give each a part.
//   - Only the models fail over. Vectors of two embedders cannot be compared.
//   - With one provider there is no failover: use patterns/circuitbreaker.
//   - A batch costs waiting time, at most MaxDelay while the embedder is idle.
//   - If the messages must survive a crash, put atoms/durable in front.
package llm

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/atoms/priorityprocessor"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

var Scenario = scenario.Scenario{
	Name:  "llm",
	Title: "LLM pipeline: cheap checks first, batches, token limits, failover",
	Run: func(ctx context.Context, s *scenario.Screen) error {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		return run(ctx, s, listener, &http.Transport{})
	},
}

// run starts the server on listener, and calls it through transport.
func run(ctx context.Context, s *scenario.Screen, listener net.Listener, transport *http.Transport) error {
	models := &models{accounts: map[string]*account{"embedder": {}, "alpha": {}, "beta": {}}}
	server := &http.Server{Handler: models}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(listener) })
	defer serving.Wait()
	defer server.Shutdown(context.WithoutCancel(ctx))
	defer transport.CloseIdleConnections()

	base, client := "http://"+listener.Addr().String(), &http.Client{Transport: transport}
	embedder := newProvider("embedder", base, client, s.Sink)
	defer embedder.limits.Close()
	alpha := newProvider("alpha", base, client, s.Sink)
	defer alpha.limits.Close()
	beta := newProvider("beta", base, client, s.Sink)
	defer beta.limits.Close()

	again := core.Must(retry.New(retry.Options{Sink: s.Sink}))
	embeddings := core.Must(batching.NewResultBatcher(retry.WrapResult(again, embedder.embed), batching.Options[string]{
		Name: "embeddings", MaxSize: 8, MaxDelay: 20 * time.Millisecond, Sink: s.Sink,
	}))
	defer embeddings.Close()
	chat := core.Must(priorityprocessor.NewResult([]priorityprocessor.ResultProcessor[string, string]{
		{Name: "alpha", Priority: 1, Do: retry.WrapResult(again, alpha.ask)},
		{Name: "beta", Priority: 2, Do: retry.WrapResult(again, beta.ask)},
	}, priorityprocessor.Options{Name: "chat", Threshold: 1, ProbeAfter: 60 * time.Millisecond, Sink: s.Sink}))
	defer chat.Close()

	known, err := embedder.embed(ctx, examples)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	checks := core.Must(waveorchestrator.New([]waveorchestrator.Worker[string, string]{
		{Name: "rules", Wave: 0, Do: rules},
		{Name: "embedding", Wave: 1, Do: func(ctx context.Context, text string) (string, error) {
			vector, err := embeddings.Do(ctx, text)
			return similar(vector, known), err
		}},
		{Name: "model", Wave: 2, Do: chat.Do},
	}, waveorchestrator.Options[string]{
		EarlyExit:    func(label string) bool { return label != "" },
		WaveInterval: -1, WorkerTimeout: 10 * time.Second, TotalTimeout: 20 * time.Second, Sink: s.Sink,
	}))
	defer checks.Close()

	defer retry.Delayed.Subscribe(s.Sink, func(e core.Signal, d retry.Event) {
		s.Printf("%s: %v, again in %v", e.Name, d.Err, d.Delay)
	})()
	defer batching.Flushed.Subscribe(s.Sink, func(e core.Signal, b batching.Batch) {
		s.Printf("%s: %d texts in one request", e.Name, b.Items)
	})()
	defer s.Sink.Subscribe("failover.requested:*, processor.*, route.assigned:*, rate.limit.limited", func(e core.Signal) {
		s.Printf("%s %s", e.Name, e.Key)
	})()
	var messages []string
	for i := range 50 {
		messages = append(messages, fmt.Sprintf(kinds[i%len(kinds)], i))
	}
	decidedBy := map[string]int{}
	for result, err := range core.Map(ctx, slices.Values(messages), checks.Execute, core.Options{MaxConcurrency: 32, Sink: s.Sink}) {
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		if result.Decisive == nil {
			return fmt.Errorf("llm: a message has no label: %v", result.Failed)
		}
		decidedBy[result.Decisive.Worker]++
	}
	s.Printf("decided by %v", decidedBy)
	batches, failovers := embeddings.Counters(), chat.Stats().Failovers
	saved := batches.Succeeded - batches.Batches
	s.Printf("%d texts in %d requests: batching saved %d", batches.Succeeded, batches.Batches, saved)
	requests, err := report(s, models, embedder, alpha, beta)
	if err != nil {
		return err
	}
	if failovers == 0 || saved == 0 {
		return fmt.Errorf("llm: %d failovers, %d requests saved", failovers, saved)
	}
	s.Takeaway("%d messages labelled, %d requests, %d saved, %d failed over, limits kept", len(messages), requests, saved, failovers)
	return nil
}

// report prints what both sides have counted. It returns an error if a provider got more
// than its limits or a request too early, or counted other tokens than its client.
func report(s *scenario.Screen, models *models, providers ...*provider) (requests int, err error) {
	models.mu.Lock()
	defer models.mu.Unlock()
	s.Printf("          requests       tokens           most in any %v", window)
	s.Printf("provider  sent failed  estimated used   requests     tokens")
	for _, p := range providers {
		a := models.accounts[p.name]
		s.Printf("%-8s %5d %6d %10d %4d %5d of %2d %3d of %d", p.name, a.requests, a.failed,
			p.estimated.Load(), p.used.Load(), a.mostRequests, maxRequests, a.mostTokens, maxTokens)
		if a.mostRequests > maxRequests || a.mostTokens > maxTokens || a.early > 0 || int64(a.tokens) != p.used.Load() {
			return 0, fmt.Errorf("llm: the server says of %s: %+v", p.name, *a)
		}
		requests += a.requests
	}
	return requests, nil
}
