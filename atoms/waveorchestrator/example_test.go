package waveorchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	answers := func(answer string) core.ResultWork[string, string] {
		return func(ctx context.Context, input string) (string, error) { return input + ": " + answer, nil }
	}
	sink := signals.NewSink(signals.SinkOptions{})
	orchestrator := core.Must(waveorchestrator.New([]waveorchestrator.Worker[string, string]{
		{Name: "FastCheck1", Wave: 0, Priority: 10, Do: answers("well-formed")},
		{Name: "FastCheck2", Wave: 0, Priority: 20, Do: answers("unknown")},
		{Name: "SlowCheck", Wave: 1, Priority: 10, Do: answers("DEFINITIVE_ANSWER")}, // runs only if no earlier result was decisive
		{Name: "AI", Wave: 2, Priority: 10, Do: answers("perhaps")},                  // expensive, so it comes last
	}, waveorchestrator.Options[string]{
		MaxPerWave:       4,
		PerWave:          map[int]int{0: 8, 1: 4, 2: 1},
		EarlyExit:        func(result string) bool { return strings.Contains(result, "DEFINITIVE_ANSWER") },
		BreakerThreshold: 3,
		Sink:             sink,
	}))
	defer orchestrator.Close()

	result, err := orchestrator.Execute(context.Background(), "my-input")
	if err != nil {
		panic(err) // no worker has completed, or the time is over; the result says more
	}
	fmt.Println("Outcome:", result.Outcome, "by", result.Decisive.Worker)
	for _, w := range result.Completed {
		fmt.Println("Completed:", w.Worker, "in wave", w.Wave, "-", w.Value)
	}
	fmt.Println("Failed:", len(result.Failed), "workers")
	fmt.Println("Skipped:", result.Skipped[0].Worker, "because of", result.Skipped[0].Err)
	fmt.Println("Signals:", sink.Count("worker.completed:*"))
	// Output:
	// Outcome: early-exit by SlowCheck
	// Completed: FastCheck1 in wave 0 - my-input: well-formed
	// Completed: FastCheck2 in wave 0 - my-input: unknown
	// Completed: SlowCheck in wave 1 - my-input: DEFINITIVE_ANSWER
	// Failed: 0 workers
	// Skipped: AI because of waveorchestrator: early exit
	// Signals: 3
}

// The options of an execution. Numbers and durations are the defaults, except PerWave.
func ExampleOptions() {
	type Finding struct{ Confidence float64 }

	options := waveorchestrator.Options[Finding]{
		TotalTimeout:  5 * time.Second,        // of an execution
		WorkerTimeout: 2 * time.Second,        // of each worker
		WaveInterval:  50 * time.Millisecond,  // between waves; negative: none
		Grace:         100 * time.Millisecond, // for workers to return when their context has ended

		MaxPerWave: 4, // workers at once; negative: no limit
		PerWave: map[int]int{
			0: 8,
			1: 4,
			2: 1, // LLM
		},

		BreakerThreshold: 3,                // failures in a row; negative: no breakers
		BreakerReset:     30 * time.Second, // before the worker is tried again

		EarlyExit: func(f Finding) bool { return f.Confidence > 0.9 }, // nil: none
	}

	find := func(confidence float64) core.ResultWork[string, Finding] {
		return func(context.Context, string) (Finding, error) { return Finding{confidence}, nil }
	}
	orchestrator, err := waveorchestrator.New([]waveorchestrator.Worker[string, Finding]{
		{Name: "rules", Wave: 0, Do: find(0.5)},
		{Name: "model", Wave: 1, Do: find(0.95)},
		{Name: "LLM", Wave: 2, Do: find(0.99)},
	}, options)
	if err != nil {
		panic(err)
	}
	result, err := orchestrator.Execute(context.Background(), "text")
	fmt.Println(result.Outcome, result.Decisive.Worker, err)
	// Output:
	// early-exit model <nil>
}

// Cheap checks decide about most requests. Later waves see the few uncertain ones.
func Example_botDetection() {
	type Request struct{ Agent, IP string }
	type Verdict struct{ Confidence float64 } // how sure the worker is that it is a bot

	says := func(confidence func(Request) float64) core.ResultWork[Request, Verdict] {
		return func(_ context.Context, r Request) (Verdict, error) { return Verdict{confidence(r)}, nil }
	}
	unsure := says(func(Request) float64 { return 0.5 })
	agent := says(func(r Request) float64 {
		if strings.Contains(r.Agent, "curl") {
			return 0.99
		}
		return 0.4
	})
	reputation := says(func(r Request) float64 {
		if r.IP == "192.0.2.7" {
			return 0.01
		}
		return 0.5
	})

	detector, err := waveorchestrator.New([]waveorchestrator.Worker[Request, Verdict]{
		// Wave 0: patterns (<1ms each)
		{Name: "UserAgent", Wave: 0, Priority: 10, Do: agent},
		{Name: "Headers", Wave: 0, Priority: 20, Do: unsure},
		// Wave 1: lookups (1-10ms each)
		{Name: "IPReputation", Wave: 1, Priority: 10, Do: reputation},
		{Name: "Behavioral", Wave: 1, Priority: 20, Do: unsure},
		// Wave 2: analysis (10-50ms)
		{Name: "Inconsistency", Wave: 2, Priority: 10, Do: unsure},
		// Wave 3: expensive, for uncertain requests only
		{Name: "LLM", Wave: 3, Priority: 10, Do: unsure},
	}, waveorchestrator.Options[Verdict]{
		PerWave:      map[int]int{0: 8, 1: 4, 2: 2, 3: 1},
		EarlyExit:    func(v Verdict) bool { return v.Confidence > 0.95 || v.Confidence < 0.05 },
		TotalTimeout: time.Second,
		WaveInterval: -1,
	})
	if err != nil {
		panic(err)
	}
	for _, request := range []Request{{Agent: "curl/8"}, {Agent: "Firefox", IP: "192.0.2.7"}, {Agent: "Firefox"}} {
		result, err := detector.Execute(context.Background(), request)
		if err != nil {
			panic(err)
		}
		if d := result.Decisive; d != nil {
			fmt.Printf("%.0f %% sure it is a bot, by %s in wave %d\n", 100*d.Value.Confidence, d.Worker, d.Wave)
		} else {
			fmt.Println("uncertain after", len(result.Completed), "checks")
		}
	}
	// Output:
	// 99 % sure it is a bot, by UserAgent in wave 0
	// 1 % sure it is a bot, by IPReputation in wave 1
	// uncertain after 6 checks
}

// A pipeline. Its stages share data through the input, which is a pointer: a worker does not get
// the results of other workers.
func Example_dataPipeline() {
	type Data struct {
		raw   []int
		parts [3]int
		sum   int
	}
	load := func(_ context.Context, d *Data) (string, error) {
		d.raw = []int{1, 2, 3}
		return "loaded", nil
	}
	validate := func(_ context.Context, d *Data) (string, error) { return "valid schema", nil }
	transform := func(i int) core.ResultWork[*Data, string] {
		return func(_ context.Context, d *Data) (string, error) {
			d.parts[i] = d.raw[i] * 10 // each its own part
			return fmt.Sprint("transformed ", i), nil
		}
	}
	aggregate := func(_ context.Context, d *Data) (string, error) {
		for _, part := range d.parts {
			d.sum += part
		}
		return fmt.Sprint("sum ", d.sum), nil
	}
	save := func(_ context.Context, d *Data) (string, error) { return fmt.Sprint("saved ", d.sum), nil }

	pipeline, err := waveorchestrator.New([]waveorchestrator.Worker[*Data, string]{
		// Wave 0: load and validate
		{Name: "Load", Wave: 0, Priority: 10, Do: load},
		{Name: "Validate", Wave: 0, Priority: 20, Do: validate},
		// Wave 1: transform, side by side
		{Name: "Transform1", Wave: 1, Priority: 10, Do: transform(0)},
		{Name: "Transform2", Wave: 1, Priority: 10, Do: transform(1)},
		{Name: "Transform3", Wave: 1, Priority: 10, Do: transform(2)},
		// Wave 2: aggregate
		{Name: "Aggregate", Wave: 2, Priority: 10, Do: aggregate},
		// Wave 3: save
		{Name: "Save", Wave: 3, Priority: 10, Do: save},
	}, waveorchestrator.Options[string]{WaveInterval: -1})
	if err != nil {
		panic(err)
	}
	result, err := pipeline.Execute(context.Background(), &Data{})
	if err != nil {
		panic(err)
	}
	for _, w := range result.Completed {
		fmt.Printf("%d %s: %s\n", w.Wave, w.Worker, w.Value)
	}
	// Output:
	// 0 Load: loaded
	// 0 Validate: valid schema
	// 1 Transform1: transformed 0
	// 1 Transform2: transformed 1
	// 1 Transform3: transformed 2
	// 2 Aggregate: sum 60
	// 3 Save: saved 60
}

// A worker that fails again and again is skipped for a while. The signals of an orchestrator
// carry an Event.
func ExampleOrchestrator_Workers() {
	orchestrator, err := waveorchestrator.New([]waveorchestrator.Worker[int, int]{
		{Name: "good", Do: func(context.Context, int) (int, error) { return 1, nil }},
		{Name: "bad", Do: func(context.Context, int) (int, error) { return 0, errors.New("connection refused") }},
	}, waveorchestrator.Options[int]{BreakerThreshold: 2})
	if err != nil {
		panic(err)
	}
	orchestrator.Sink().Subscribe(waveorchestrator.SignalWorkerFailed+":*", func(s signals.Signal) {
		e := s.Payload().(waveorchestrator.Event)
		fmt.Println(e.Worker, "of wave", e.Wave, "failed:", e.Err)
	})
	for range 3 {
		result, err := orchestrator.Execute(context.Background(), 0)
		if err != nil {
			panic(err)
		}
		for _, w := range result.Skipped {
			fmt.Println(w.Worker, "skipped:", w.Err)
		}
	}
	isOpen := func(w waveorchestrator.WorkerStatus) bool { return w.Breaker == breaker.Open }
	for _, w := range orchestrator.Workers() {
		fmt.Println(w.Name, "is skipped:", isOpen(w))
	}
	fmt.Println(orchestrator.Stats().Succeeded, "executions")
	// Output:
	// bad of wave 0 failed: connection refused
	// bad of wave 0 failed: connection refused
	// bad skipped: waveorchestrator: the breaker is open
	// bad is skipped: true
	// good is skipped: false
	// 3 executions
}
