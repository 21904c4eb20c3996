package fromcsharp_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/quorum"
	"github.com/ephemeralgo/ephemeral/core/reputation"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/core/waves"
)

// Signals start stages, a quorum counts their votes, a verdict ends the run, and the score of
// the user is kept.
func Example_botDetection() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	BotEvidence := signals.NewKind[evidence]("bot.evidence") // usually a package variable
	users := core.Must(reputation.New[string](reputation.Options{HalfLife: 10 * time.Minute, Sink: sink}))

	// stages: detectors run when content arrives
	detectors := core.Must(waves.New([]waves.Stage{
		{Name: "lexical", Trigger: "content.received", Work: runLexical, OnComplete: "vote.lexical"},
		{Name: "behavior", Trigger: "content.received", Work: runBehavior, OnComplete: "vote.behavior"},
	}, "verdict.*", core.Options{Sink: sink}))
	defer detectors.Close()
	detectors.Start()
	sink.RaiseKey("content.received", "user-123")

	// quorum: wait for two votes
	votes := core.Must(quorum.Wait(ctx, sink, "vote.*", 2, quorum.Options{
		CancelOn: "verdict.*",
		Timeout:  3 * time.Second,
		Within:   time.Minute, // includes votes that are there already
	}))
	if votes.Reached {
		score := users.Update("user-123", +5)
		BotEvidence.Raise(sink, "user-123", evidence{User: "user-123", Score: score})
		sink.RaiseKey("verdict.bot", "user-123")
	}

	verdict, _ := detectors.Exited()
	fmt.Println(verdict.Name, verdict.Key)
	for _, e := range BotEvidence.Sense(sink, signals.Query{}) {
		fmt.Printf("%s has %.0f\n", e.User, e.Score)
	}
	// Output:
	// verdict.bot user-123
	// user-123 has 5
}

// A reporter raises the progress, at every fifth step and at the end.
func Example_progress() {
	sink := signals.NewSink(signals.SinkOptions{})

	ingest := core.Must(progress.New(sink, "ingest", 12, progress.Options{Every: 5}))
	defer ingest.Done()
	for range 12 {
		ingest.Add(1)
	}

	for s, report := range progress.Reports.Sense(sink, signals.Query{}) {
		fmt.Println(s.Key, report)
	}
	// Output:
	// ingest 5/12
	// ingest 10/12
	// ingest 12/12
}

// These functions stand for your code.

type evidence struct {
	User  string
	Score float64
}

func runLexical(context.Context, signals.Signal) error { return nil }

func runBehavior(context.Context, signals.Signal) error { return nil }
