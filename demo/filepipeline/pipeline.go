package filepipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A claim is a reaction's work item: the source operation to read, and the pin that keeps it in its window until then.
type claim struct {
	source core.OperationID
	unpin  func()
}

// A change is one write to the table, made by the one writer.
type change struct {
	path  string
	apply func(ctx context.Context, rows *store) error
}

// stateFile is the name under which an operation keeps the [File] it is about.
const stateFile = "file"

// pipeline is one run: the source, its three reactions and what they share.
type pipeline struct {
	in     fs.FS
	out    *Output
	limits Limits
	sink   *signals.Sink
	tally  *tally
	times  [stages]histogram
	bytes  atomic.Int64          // bytes of the hashed images
	broken atomic.Pointer[error] // the first result that could not be written

	files      *core.Coordinator[string] // the source; items are paths
	thumbnails *core.Coordinator[claim]
	duplicates *core.Coordinator[claim]
	metadata   *core.Coordinator[change]

	// work is the context of all work after the intake. It does not end with an interruption: accepted work is still
	// finished.
	work context.Context
	// stop ends the intake, with a reason.
	stop context.CancelCauseFunc
}

// Run sends every regular file of in through the pipeline, writes the results to out, and returns when all of it is
// done. When ctx ends, it accepts no more files, finishes the accepted ones, and returns a Summary with Interrupted
// set. A file that fails is no error. A result that cannot be written is an error. The Summary is valid in both
// cases.
func Run(ctx context.Context, in fs.FS, out *Output, opts Options) (Summary, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return Summary{}, err
	}
	start := time.Now()
	intake, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := &pipeline{in: in, out: out, limits: opts.Limits, sink: opts.Sink, tally: newTally(),
		work: context.WithoutCancel(ctx), stop: stop}
	if err := p.build(opts); err != nil {
		return Summary{}, err
	}
	defer p.subscribe()()

	err = p.feed(intake)
	interrupted := err != nil && ctx.Err() != nil
	if interrupted {
		p.sink.Raise(SignalPipelineInterrupted)
	}
	err = errors.Join(p.drain(), p.outputError(), out.rows.settle())

	summary := p.tally.summary()
	summary.Bytes = p.bytes.Load()
	summary.Elapsed = time.Since(start)
	summary.Interrupted = interrupted
	for s := range stages {
		summary.Stages = append(summary.Stages, p.times[s].summary(s))
	}
	return summary, err
}

// build makes the coordinators. Their queues are short: an item that waits in a queue pins its source, and a full queue
// slows the source down. No coordinator starts a goroutine before it has work.
func (p *pipeline) build(opts Options) error {
	options := func(name string, limit int) core.Options {
		return core.Options{Name: name, MaxConcurrency: limit, MaxQueued: queued * limit, MaxTracked: window, Sink: p.sink}
	}
	var errs [4]error
	p.thumbnails, errs[0] = core.NewKeyedCoordinator(p.contents, p.thumbnail, options("thumbnails", opts.Thumbnailers))
	p.duplicates, errs[1] = core.NewCoordinator(p.duplicate, options("duplicates", comparers))
	p.metadata, errs[2] = core.NewCoordinator(p.write, options("metadata", writers))

	source := options("files", opts.Readers)
	// MaxTracked also bounds the number of pins. There is room for one claim in every place of every reaction, and
	// for each reader that waits to hand over a claim.
	source.MaxTracked = window + opts.Readers + (1+queued)*(opts.Thumbnailers+comparers+writers)
	p.files, errs[3] = core.NewCoordinator(p.read, source)
	return errors.Join(errs[:]...)
}

const (
	comparers = 2  // they ask the writer which files are equal; more comparers would only wait for the writer
	writers   = 1  // the table has one
	queued    = 2  // items that may wait for each one that runs
	window    = 64 // finished operations that a coordinator shows
)

// feed walks the input and hands every regular file to the source, waiting while its queue is full. It returns early,
// with the reason, when ctx ends.
func (p *pipeline) feed(ctx context.Context) error {
	for e := range walk(p.in) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case e.err != nil:
			DirectoryFailed.Raise(p.sink, e.path, Failure{File{Path: e.path}, cause(e.err)})
		case e.skip != "":
			FileSkipped.Raise(p.sink, e.path, e.skip)
		default:
			if _, err := p.files.Enqueue(ctx, e.path); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain waits for all accepted work, upstream first. Reactions get no more items only after the last source has
// ended, and the writer serves all of them.
func (p *pipeline) drain() error {
	for _, c := range []core.Lifecycle{p.files, p.thumbnails, p.duplicates, p.metadata} {
		if err := c.Drain(p.work); err != nil {
			return err
		}
	}
	return nil
}

// fail reports a result that could not be written, and ends the intake.
func (p *pipeline) fail(on signals.Raiser, path string, err error) error {
	OutputFailed.Raise(on, path, Failure{File{Path: path}, cause(err)})
	err = fmt.Errorf("output for %s: %w", Printable(path), err)
	p.broken.CompareAndSwap(nil, &err)
	p.stop(err)
	return err
}

func (p *pipeline) outputError() error {
	if err := p.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// cause is the text of an error without the path, which has its own column.
func cause(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return err.Error()
}
