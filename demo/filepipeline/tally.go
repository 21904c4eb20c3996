package filepipeline

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// maxFailures is how many failures a summary lists; the table has them all.
const maxFailures = 50

// tally counts the signals of the run, and knows nothing else about it. It needs fixed memory, because there are few
// names and reasons. The sink's window would forget signals.
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

// counted matches the signals of the pipeline and core.SignalPanicked.
const counted = "file.*, directory.*, thumbnail.*, metadata.*, duplicate.*, output.*, pipeline.*, " + core.SignalPanicked

// subscribe listens on the sink until the result is called.
func (t *tally) subscribe(sink *signals.Sink) (cancel func()) {
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

func (t *tally) count(s signals.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signals[s.Name]++
}

func (t *tally) skip(_ signals.Signal, why Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped[why]++
}

// fail keeps the failures that sort lowest, so that the list does not depend on the order in
// which they come.
func (t *tally) fail(_ signals.Signal, f Failure) {
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
