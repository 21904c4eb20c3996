package filepipeline

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// maxFailures is how many failures a summary lists; the database has them all.
const maxFailures = 50

// tally is the bookkeeper: it knows of the run only what the signals say. It counts in fixed memory, because the names
// and reasons are few; the sink's window would forget.
type tally struct {
	mu       sync.Mutex
	signals  map[string]uint64
	skipped  map[Reason]uint64
	failures []Failure // the maxFailures with the lowest paths, sorted
	failed   uint64
}

func newTally() *tally {
	return &tally{signals: map[string]uint64{}, skipped: map[Reason]uint64{}}
}

// counted matches the signals of the pipeline, and panics.
const counted = "file.*, directory.*, thumbnail.*, metadata.*, duplicate.*, output.*, pipeline.*, " + core.SignalPanicked

// subscribe listens on the sink until the result is called.
func (t *tally) subscribe(sink *core.Sink) (cancel func()) {
	cancels := []func(){
		sink.Subscribe(counted, t.count),
		FileSkipped.Subscribe(sink, t.skip),
		FileFailed.Subscribe(sink, t.fail),
		DirectoryFailed.Subscribe(sink, t.fail),
		ThumbnailFailed.Subscribe(sink, t.fail),
	}
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

func (t *tally) count(s core.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signals[s.Name]++
}

func (t *tally) skip(_ core.Signal, why Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped[why]++
}

// fail keeps the failures that sort lowest, so that the list does not depend on which came first.
func (t *tally) fail(_ core.Signal, f Failure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed++
	i, _ := slices.BinarySearchFunc(t.failures, f.File.Path, func(have Failure, path string) int {
		return cmp.Compare(have.File.Path, path)
	})
	t.failures = slices.Insert(t.failures, i, f)
	t.failures = t.failures[:min(len(t.failures), maxFailures)]
}

func (t *tally) summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Summary{
		Signals:  maps.Clone(t.signals),
		Skipped:  maps.Clone(t.skipped),
		Failures: slices.Clone(t.failures),
		Failed:   t.failed,
	}
}
