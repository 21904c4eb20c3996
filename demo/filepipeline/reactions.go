package filepipeline

import (
	"context"
	"errors"
	"image"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// These errors do not happen. If one did, the results would be incomplete, and the run must not look like a success.
var (
	errNotPinned = errors.New("the source operation could not be pinned")
	errNoSource  = errors.New("the source operation is gone")
)

// subscribe wires the reactions to the signals. For one signal, subscribers run in this order, and the writer is
// first in, first out. So the row of a file exists before a reaction adds to it.
func (p *pipeline) subscribe() (cancel func()) {
	cancels := []func(){
		p.tally.subscribe(p.sink),

		p.sink.Subscribe(SignalFileSaved, func(s signals.Signal) { p.record(s, "") }),
		p.sink.Subscribe(SignalFileSaved, func(s signals.Signal) { p.hand(p.thumbnails, s) }),
		p.sink.Subscribe(SignalFileSaved, func(s signals.Signal) { p.hand(p.duplicates, s) }),

		// A failed file has a row as well. If the whole file could be read, it may be a duplicate.
		FileFailed.Subscribe(p.sink, func(s signals.Signal, f Failure) {
			p.record(s, f.Cause)
			if f.File.SHA256 != "" {
				p.hand(p.duplicates, s)
			}
		}),
		ThumbnailComplete.Subscribe(p.sink, func(_ signals.Signal, t Thumbnail) {
			p.change(t.Path, func(_ context.Context, rows *store) error { return rows.setThumb(t.Path, t.Name) })
		}),
		ThumbnailFailed.Subscribe(p.sink, func(_ signals.Signal, f Failure) {
			p.change(f.File.Path, func(_ context.Context, rows *store) error { return rows.setError(f.File.Path, f.Cause) })
		}),
	}
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// claim pins the source operation of a signal for one reaction. It runs inside the raise, so the operation still
// runs and is in the window.
func (p *pipeline) claim(s signals.Signal) (claim, error) {
	unpin, ok := p.files.Pin(s.Operation)
	if !ok {
		return claim{}, errNotPinned
	}
	return claim{s.Operation, unpin}, nil
}

// take reads the state of a claimed source and gives up the claim.
func (p *pipeline) take(c claim) (File, error) {
	defer c.unpin()
	return p.look(c)
}

// contents is the key of a claim. So equal files never race for one thumbnail: all but the first find it finished.
func (p *pipeline) contents(c claim) string {
	file, _ := p.look(c)
	return file.SHA256
}

// look reads the state of a claimed source.
func (p *pipeline) look(c claim) (File, error) {
	source, ok := p.files.Lookup(c.source)
	if !ok {
		return File{}, errNoSource
	}
	file, ok := core.Value[File](source, stateFile)
	if !ok {
		return File{}, errNoSource
	}
	return file, nil
}

// hand gives the source operation of s to a reaction, and waits while that one is busy.
func (p *pipeline) hand(reaction *core.Coordinator[claim], s signals.Signal) {
	c, err := p.claim(s)
	if err == nil {
		_, err = reaction.Enqueue(p.work, c)
	}
	if err != nil {
		p.fail(p.sink, s.Key, err)
	}
}

// record lets the writer write the row of the source operation of s.
func (p *pipeline) record(s signals.Signal, cause string) {
	c, err := p.claim(s)
	if err != nil {
		p.fail(p.sink, s.Key, err)
		return
	}
	p.change(s.Key, func(ctx context.Context, rows *store) error {
		file, err := p.take(c)
		if err != nil {
			return err
		}
		if err := rows.insert(file, cause); err != nil {
			return err
		}
		core.OperationFrom(ctx).RaiseKey(SignalMetadataWritten, file.Path)
		return nil
	})
}

// change gives the writer a change to write.
func (p *pipeline) change(path string, apply func(ctx context.Context, rows *store) error) {
	if _, err := p.metadata.Enqueue(p.work, change{path, apply}); err != nil {
		p.fail(p.sink, path, err)
	}
}

// write is the work of the one writer.
func (p *pipeline) write(ctx context.Context, c change) error {
	defer p.times[stageMetadata].since(time.Now())
	op := core.OperationFrom(ctx)
	op.SetKey(c.path)
	if err := c.apply(ctx, p.out.rows); err != nil {
		return p.fail(op, c.path, err)
	}
	return nil
}

// thumbnail is the work of the thumbnails reaction.
func (p *pipeline) thumbnail(ctx context.Context, c claim) error {
	op := core.OperationFrom(ctx)
	file, err := p.take(c)
	if err != nil {
		return p.fail(op, "", err)
	}
	op.SetKey(file.Path)
	defer p.times[stageThumbnail].since(time.Now())
	name, shared := p.out.hasThumb(file.SHA256)
	if !shared {
		thumb, err := p.render(op, file)
		if err != nil {
			return err
		}
		if err := p.out.writeThumb(file.SHA256, thumb); err != nil {
			return p.fail(op, file.Path, err)
		}
	}
	ThumbnailComplete.Raise(op, file.Path, Thumbnail{file.Path, name, shared})
	return nil
}

// render makes the thumbnail in memory, or says why not.
func (p *pipeline) render(op *core.Operation, file File) (thumb image.Image, err error) {
	err = errPanicked
	defer func() {
		if err != nil {
			ThumbnailFailed.Raise(op, file.Path, Failure{file, cause(err)})
		}
	}()
	return renderThumb(p.in, file)
}

// duplicate is the work of the duplicates reaction. The one writer makes its decision.
func (p *pipeline) duplicate(ctx context.Context, c claim) error {
	defer p.times[stageDuplicate].since(time.Now())
	op := core.OperationFrom(ctx)
	file, err := p.take(c)
	if err != nil {
		return p.fail(op, "", err)
	}
	op.SetKey(file.Path)
	var found Duplicate
	err = p.metadata.Do(ctx, change{file.Path, func(_ context.Context, rows *store) (err error) {
		found, err = rows.claim(file.Path, file.SHA256)
		return err
	}})
	if err != nil {
		return err
	}
	if found.Of != "" {
		DuplicateFound.Raise(op, found.Path, found)
	}
	return nil
}
