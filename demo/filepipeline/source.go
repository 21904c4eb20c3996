package filepipeline

import (
	"context"
	"errors"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// errPanicked is the cause of a failure when a decoder panicked on what it was fed. The panic itself is recovered at
// the operation's boundary; the deferred announcements below run on its way there.
var errPanicked = errors.New("the decoder panicked")

// read is the work of the source: find out what the file is, keep that as state, and say so. The reactions run behind
// the signal, on this goroutine as far as their queues: when they are full, read waits here.
func (p *pipeline) read(ctx context.Context, path string) (err error) {
	op := core.OperationFrom(ctx)
	op.SetKey(path)
	file, err := File{Path: path}, errPanicked
	defer func() { err = p.announce(op, file, err) }()
	defer p.times[stageRead].since(time.Now())
	file, err = inspect(p.in, path, p.limits)
	return err
}

// announce raises the one signal that accounts for the file.
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
