// Package metrics shows a table of counters and latencies that are measured: each sample is
// an operation that decompresses a document.
package metrics

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/aggregate"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario checks 20 compressed documents, some of which are damaged.
var Scenario = scenario.Scenario{
	Name:  "metrics",
	Title: "Metrics: success rate and percentiles of measured work",
	Run:   run,
}

const (
	samples  = 20
	interval = 100 * time.Millisecond
	healthy  = 0.85 // share of the documents that are not damaged
)

// Sample has the measurements of one document.
type Sample struct{ Took time.Duration }

// Checked is raised for each document.
var Checked = signals.NewKind[Sample]("document.checked")

func run(ctx context.Context, s *scenario.Screen) error {
	latencies, err := aggregate.New(s.Sink, Checked, time.Minute, aggregate.Options{})
	if err != nil {
		return err
	}
	defer latencies.Stop()

	// The coordinator measures the time of each body, and counts the outcomes.
	check, err := core.NewCoordinator(func(ctx context.Context, document []byte) error {
		core.OperationFrom(ctx).Raise("document.opened")
		unzip, err := gzip.NewReader(bytes.NewReader(document))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, unzip)
		return err
	}, core.Options{Name: "check", Sink: s.Sink, OnDone: func(op core.Snapshot) {
		Checked.Raise(s.Sink, "", Sample{Took: op.Duration()})
	}})
	if err != nil {
		return err
	}
	defer check.Close()

	documents := compressed()
	s.Printf("%d documents; about %.0f %% are not damaged (a fixed sequence)", samples, 100*healthy)
	s.Printf("total  rate   ok  failed       p50       p95       p99")
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for n, document := range documents {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := check.Do(ctx, document); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			s.Printf("document %d: %v", n+1, err)
		}
		if n++; n%3 == 0 || n == samples {
			end, took := check.Stats(), latencies.Summarize(seconds)
			s.Printf("%5d %4.0f%% %4d  %6d %9v %9v %9v", n, 100*float64(end.Succeeded)/float64(n),
				end.Succeeded, end.Failed, quantile(took, 0.5), quantile(took, 0.95), quantile(took, 0.99))
		}
	}
	end, took := check.Stats(), latencies.Summarize(seconds)
	if took.Count != samples || end.Failed == 0 {
		return fmt.Errorf("metrics: %d of %d documents were measured, %d failed", took.Count, samples, end.Failed)
	}
	s.Takeaway("%d of %d ok, %d failed; measured: p50 %v, p95 %v, p99 %v", end.Succeeded,
		took.Count, end.Failed, quantile(took, 0.5), quantile(took, 0.95), quantile(took, 0.99))
	return nil
}

func seconds(s Sample) float64 { return s.Took.Seconds() }

func quantile(took aggregate.Summary, q float64) time.Duration {
	return time.Duration(took.Quantile(q) * float64(time.Second)).Round(10 * time.Microsecond)
}

// compressed returns documents of 1 to 16 pages, each of 32 KiB. Some are damaged: the
// checksum of their last page is wrong.
func compressed() [][]byte {
	text, chance := rand.NewChaCha8([32]byte{}), rand.New(rand.NewPCG(2, 0)) // fixed sequences
	var page [16 << 10]byte
	text.Read(page[:])
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	fmt.Fprintf(zip, "%x", page) // a Buffer returns no error
	zip.Close()
	documents := make([][]byte, samples)
	for i := range documents {
		documents[i] = bytes.Repeat(b.Bytes(), 1+chance.IntN(16))
		if chance.Float64() >= healthy {
			documents[i][len(documents[i])-8] ^= 1 // the last 8 bytes are checksum and length
		}
	}
	return documents
}
