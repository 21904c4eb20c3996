package persistentwindow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Window stores the signals of a sink. Make one with [Open], and close it before its writer.
// All methods are safe for concurrent use. A timer runs while signals wait to be written. A
// goroutine runs while they are written. A signal that waits takes about 300 bytes and its payload.
type Window struct {
	writer *sqlitewriter.Writer
	sink   *signals.Sink
	opts   Options
	life   *life
	runs   *core.Coordinator[struct{}] // its operations are the flushes, one at a time
	cancel []func()                    // end the subscriptions

	insertSQL, deleteSQL string

	mu     sync.Mutex
	queue  []sqlitewriter.Statement // one for each signal or retraction that waits for a flush
	counts map[string]int           // signals by name since the last flush
	timer  *time.Timer              // timer of the next flush; it runs while statements wait
	stats  Stats
	lost   int // number of statements dropped since the last flush
	closed bool
}

// Open opens a window of sink in the file of writer. If the table does not exist, Open creates it.
// It restores signals to sink, and begins to record signals. See the package documentation.
//
//ephemeral:raises *
func Open(ctx context.Context, writer *sqlitewriter.Writer, sink *signals.Sink, opts Options) (*Window, error) {
	if writer == nil || sink == nil {
		return nil, errors.New("persistentwindow: Open needs a Writer and a Sink")
	}
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	w := &Window{writer: writer, sink: sink, opts: opts, counts: map[string]int{}, life: lifeOf(sink)}
	w.insertSQL, w.deleteSQL = w.sql(insertRow), w.sql(deleteRow)
	if w.runs, err = core.NewCoordinator(w.run, core.Options{Name: opts.Name, MaxConcurrency: 1, MaxTracked: -1, EchoCapacity: -1}); err != nil {
		return nil, w.named(err)
	}
	w.timer = time.AfterFunc(math.MaxInt64, func() { // the timer does not fire before Reset
		_, _ = w.runs.TryEnqueue(context.Background(), struct{}{}) // if there is no room, other flushes are pending
	})
	w.timer.Stop()
	raised, err := w.load(ctx)
	if err != nil {
		return nil, w.named(err)
	}
	w.cancel = append(w.cancel, sink.SubscribeRetracted(opts.Pattern, w.retract))
	w.stats.Restored = sink.Restore(slices.Values(slices.DeleteFunc(raised, func(s signals.Signal) bool {
		_, known := w.life.restored.LoadOrStore(s.Source, true) // by another window
		return known
	})))
	w.cancel = append(w.cancel, sink.Follow(opts.Pattern, w.note))
	sink.RaiseKey(SignalInitialized, opts.Name)
	Loaded.Raise(sink, opts.Name, w.stats.Restored)
	return w, nil
}

func (w *Window) named(err error) error {
	return fmt.Errorf("persistentwindow: %q in %s: %w", w.opts.Name, w.writer.Path(), err)
}

// Name is [Options.Name], or its default.
func (w *Window) Name() string { return w.opts.Name }

// Stats returns the counters.
func (w *Window) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Pending = len(w.queue)
	return s
}

// note handles a signal.
func (w *Window) note(s signals.Signal) {
	if _, restored := OriginOf(s); restored || !isStorable(s) {
		return
	}
	insert := w.insert(s) // calls functions of the user, so no lock may be held
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.counts[s.Name]
	if w.opts.SampleRate > 1 && len(w.counts) < w.opts.MaxQueued {
		w.counts[s.Name] = n + 1
	}
	if n%w.opts.SampleRate != 0 {
		w.stats.Skipped++
		return
	}
	w.add(insert)
}

// retract handles a retraction.
func (w *Window) retract(r signals.Retraction) {
	o, restored := OriginOf(r.Signal)
	if !restored {
		o = Origin{Boot: w.life.boot, Seq: r.Signal.Seq}
	}
	if isStorable(r.Signal) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.add(sqlitewriter.Statement{SQL: w.deleteSQL, Args: []any{int64(o.Boot), int64(o.Seq)}})
	}
}

// add puts a statement into the queue. The lock is held.
func (w *Window) add(s sqlitewriter.Statement) {
	if w.closed {
		return
	}
	w.stats.Noted++
	w.queue = append(w.queue, s)
	if len(w.queue)+w.stats.Running > w.opts.MaxQueued {
		w.queue[0], w.queue = sqlitewriter.Statement{}, w.queue[1:]
		w.stats.Lost++
		w.lost++
	}
	switch len(w.queue) {
	case (w.opts.MaxQueued + 1) / 2:
		w.timer.Reset(0)
	case 1:
		w.timer.Reset(w.opts.FlushInterval)
	}
}

// run writes the signals and retractions that wait when it begins. If it cannot write a batch, the
// batch waits again. If it is not known whether a batch is stored, the batch is written once more.
func (w *Window) run(ctx context.Context, _ struct{}) (err error) {
	w.mu.Lock()
	w.timer.Stop()
	clear(w.counts)
	noted, lost, written := w.queue, w.lost, 0
	w.queue, w.lost, w.stats.Running = nil, 0, len(noted)
	w.mu.Unlock()
	for batch := range slices.Chunk(noted, w.opts.MaxBatch) {
		_, err = w.writer.Batch(ctx, append(batch,
			sqlitewriter.Statement{SQL: w.sql(deleteOld), Args: []any{w.since()}},
			sqlitewriter.Statement{SQL: w.sql(deleteMore), Args: []any{w.opts.MaxRows}})...)
		if err != nil {
			err = w.named(err)
			break
		}
		written += len(batch)
	}
	w.mu.Lock()
	w.stats.Running = 0
	w.stats.Written += uint64(written)
	if err != nil {
		w.stats.Failed++
		w.queue = append(noted[written:], w.queue...)
		if !w.closed {
			w.timer.Reset(w.opts.FlushInterval)
		}
	}
	w.mu.Unlock()
	if lost > 0 {
		Lost.Raise(w.sink, w.opts.Name, lost)
	}
	if err != nil {
		Failed.Raise(w.sink, w.opts.Name, err)
	} else if written > 0 {
		Flushed.Raise(w.sink, w.opts.Name, written)
	}
	return err
}

// Flush writes all signals recorded so far, and returns when they are on the disk. After an
// error, the signals that are not written wait for the next flush. If ctx ends first, Flush
// returns the cause of ctx. In a handler of a signal of the window or of its writer, Flush
// returns [core.ErrWouldDeadlock]. After Close it returns [core.ErrClosed].
func (w *Window) Flush(ctx context.Context) error {
	switch {
	case w.isClosed():
		return w.named(core.ErrClosed)
	case w.inside(ctx):
		return w.named(core.ErrWouldDeadlock)
	}
	return w.runs.Do(ctx, struct{}{})
}

// inside reports whether a flush may wait for the caller.
func (w *Window) inside(ctx context.Context) bool {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return w.runs.Inside(ctx) || guard.Is(w.writer.Flush(ended), core.ErrWouldDeadlock)
}

// Close ends the subscriptions, so that later signals are not stored. Then it flushes, and returns
// the error of the flush. To try a failed flush again, call Close again. In a handler of a signal
// of the window or of its writer, Close returns nil, and the flush comes later. To wait for that
// flush, call Close outside of the handler. Close does not close the writer.
func (w *Window) Close() error {
	w.mu.Lock()
	w.closed = true
	w.timer.Stop()
	w.mu.Unlock()
	for _, cancel := range w.cancel {
		cancel()
	}
	if w.inside(context.Background()) {
		_, err := w.runs.TryEnqueue(context.Background(), struct{}{})
		return err
	}
	return w.runs.Do(context.Background(), struct{}{})
}

func (w *Window) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}
