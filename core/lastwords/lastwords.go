package lastwords

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Source is what a [Journal] needs of a coordinator. Cancel may be called many
// times.
type Source interface {
	OnFinalized(func(core.Snapshot)) (cancel func())
}

// Options configure a [Journal]. The zero value is the default.
type Options struct {
	// Name tells journals apart: the Source of the signals that persisting
	// raises. "" means "lastwords".
	Name string
	// MaxQueued is how many notes may wait to be persisted before the oldest
	// of them is dropped; 0 means 1024. A coordinator that is closed lets its
	// whole window go at once: to lose none of that, let as many wait as
	// the coordinator tracks.
	MaxQueued int
	// Note says what to note of an operation, and whether to; nil means
	// [NoteOf], for every one. It is called on the goroutine that evicts the
	// operation, which waits for it, so it should be quick.
	Note func(core.Snapshot) (Note, bool)
	// Sink is where [Failed] is raised, and what the function that persists
	// raises; nil means nowhere.
	Sink *core.Sink
}

// A Journal persists notes of operations that leave a coordinator's window, one at
// a time. Make one with [New]. It is kept alive by the coordinator until it is
// completed, drained or closed, and owns a goroutine only while there are notes to
// persist. All methods are safe for concurrent use.
type Journal struct {
	notes  *core.Coordinator[Note]
	note   func(core.Snapshot) (Note, bool)
	unhook func()
}

var _ core.Lifecycle = (*Journal)(nil)

// New makes a journal of the operations that leave c from now on, or says what is
// wrong with the options. Persist is given each note with a context that ends when
// the journal is closed; a note whose persist returns an error or panics is not
// tried again.
func New(c Source, persist func(context.Context, Note) error, opts Options) (*Journal, error) {
	if c == nil {
		return nil, errors.New("lastwords: New needs a coordinator to hear of, not nil")
	}
	if persist == nil {
		return nil, errors.New("lastwords: New needs a function that persists notes, not nil")
	}
	if opts.Name == "" {
		opts.Name = "lastwords"
	}
	const noted = "note"
	notes, err := core.NewCoordinator(func(ctx context.Context, n Note) error {
		core.OperationFrom(ctx).Set(noted, n)
		return persist(ctx, n)
	}, core.Options{
		Name:           opts.Name,
		MaxConcurrency: 1, // one at a time, in order
		MaxQueued:      opts.MaxQueued,
		DropOldest:     true, // so that nobody waits
		MaxTracked:     -1,   // so that failures are known at once
		EchoCapacity:   -1,
		Sink:           opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("lastwords: %w", err)
	}
	if opts.Sink != nil {
		notes.OnFinalized(func(s core.Snapshot) {
			if n, ok := core.Value[Note](s, noted); ok && s.Status == core.StatusFailed {
				Failed.Raise(opts.Sink, n.Key, Failure{n, s.Err})
			}
		})
	}
	j := &Journal{notes: notes, note: opts.Note}
	if j.note == nil {
		j.note = func(s core.Snapshot) (Note, bool) { return NoteOf(s), true }
	}
	j.unhook = c.OnFinalized(func(s core.Snapshot) {
		if n, ok := j.note(s); ok {
			j.Add(n) // it counts what comes too late
		}
	})
	return j, nil
}

// Add accepts a note from elsewhere, such as another coordinator's OnFinalized. It
// never waits: when the queue is full the oldest note is dropped. It returns
// [core.ErrClosed] after Complete, Drain and Close.
func (j *Journal) Add(n Note) error {
	_, err := j.notes.TryEnqueue(n)
	return err
}

// Stats returns the journal's counters: notes that were persisted have Succeeded,
// the others have Failed, were Dropped because the queue was full, or Cancelled by
// Close; those that came later still were Rejected.
func (j *Journal) Stats() core.Stats { return j.notes.Stats() }

// Complete ends the intake: operations that leave from now on are not noted. What
// has been is still persisted.
func (j *Journal) Complete() {
	j.unhook()
	j.notes.Complete()
}

// Flush waits until all notes so far are persisted, dropped or have failed. When ctx
// ends first it returns its cause. Called by the function that persists it returns
// [core.ErrWouldDeadlock].
func (j *Journal) Flush(ctx context.Context) error { return j.notes.Flush(ctx) }

// Drain ends the intake, as Complete does, and waits as Flush does. Close the
// coordinator first, so that what is left in its window is noted.
func (j *Journal) Drain(ctx context.Context) error {
	err := j.notes.Drain(ctx)
	if errors.Is(err, core.ErrWouldDeadlock) {
		return err
	}
	j.unhook()
	return err
}

// Close ends the intake, cancels the context of the note that is being persisted,
// accounts for those that wait as cancelled, and waits for the function that
// persists to return; called by that function or a handler it does not wait. It
// returns nil.
func (j *Journal) Close() error {
	j.unhook()
	return j.notes.Close()
}
