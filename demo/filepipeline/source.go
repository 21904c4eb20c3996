package filepipeline

import (
	"context"
	"errors"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// errPanicked is the cause of a failure when a decoder has panicked. The operation recovers the panic itself; the
// deferred announcements below run before that.
var errPanicked = errors.New("the decoder panicked")

// read is the work of the source: it inspects the file, keeps the result as state, and raises the signal. The
// handlers enqueue into the reactions on this goroutine. When their queues are full, read waits here.
func (p *pipeline) read(ctx context.Context, path string) (err error) {
	op := core.OperationFrom(ctx)
	op.SetKey(path)
	file, err := File{Path: path}, errPanicked
	defer func() { err = p.announce(op, file, err) }()
	defer p.times[stageRead].since(time.Now())
	file, err = inspect(p.in, path, p.limits)
	return err
}

// announce raises the one signal that reports the result of the file.
func (p *pipeline) announce(op *core.Operation, file File, err error) error {
	op.Set(stateFile, file)
	if file.SHA256 != "" {
		p.bytes.Add(file.Bytes)
	}
	if err == nil {
		op.RaiseKey(SignalFileSaved, file.Path)
		return nil
	}
	if skipped, ok := errors.AsType[*skipError](err); ok {
		FileSkipped.Raise(op, file.Path, skipped.reason)
		return nil
	}
	FileFailed.Raise(op, file.Path, Failure{file, cause(err)})
	return err
}
