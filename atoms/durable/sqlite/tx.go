package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

// ErrOtherFile means that the transaction of the caller is in another file than the store.
var ErrOtherFile = errors.New("sqlite: the transaction is of another file than the store")

// Enqueue adds an item to q in the transaction of the caller. If the caller commits, the item is
// in the queue; if the caller rolls back, it is not. The queue must be on a [Store] in the file
// of the transaction. After an error the caller must roll back.
func Enqueue[T any](ctx context.Context, tx *sqlitewriter.Tx, q *durable.Queue[T], item T) (durable.ItemID, error) {
	id, _, err := EnqueueUnique(ctx, tx, q, item)
	return id, err
}

// EnqueueUnique is [Enqueue], and also says whether the item was added: see [durable.Queue.EnqueueUnique].
func EnqueueUnique[T any](ctx context.Context, tx *sqlitewriter.Tx, q *durable.Queue[T], item T) (id durable.ItemID, added bool, err error) {
	in, err := q.Prepare(ctx, item)
	if err != nil {
		return 0, false, err
	}
	var done durable.Inserted
	err = within(ctx, tx, q.Store(), q.Name(), func(t *moment) { done = t.insert(in) })
	return done.ID, !done.Duplicate, err
}

// Finish ends the running item as done, in the transaction of the caller: the end and the rest
// of the transaction are committed together, or not at all. Ctx is the context of the item's
// body. If the process has lost the item, Finish returns [durable.ErrLeaseLost]. After an error
// the caller must roll back. The next item of the key can start after the commit, even before
// the body returns. If the body returns an error after the commit, the item is still done.
func Finish(ctx context.Context, tx *sqlitewriter.Tx) error {
	claim := durable.ClaimFrom(ctx)
	var done durable.Ended
	err := within(ctx, tx, durable.StoreFrom(ctx), claim.Queue, func(t *moment) {
		turned := t.end([]durable.End{{ID: claim.ID, Token: claim.Token, Kind: durable.EndDone, Result: durable.ResultFrom(ctx)}}, claimer{})
		done = turned.Ends[0]
	})
	switch {
	case err != nil:
		return err
	case done.Outcome != durable.OutcomeEnded:
		return durable.ErrLeaseLost
	}
	durable.MarkFinished(ctx)
	return nil
}

// within runs fn in the transaction of the caller.
func within(ctx context.Context, tx *sqlitewriter.Tx, store durable.Store, queue string, fn func(t *moment)) error {
	s, ok := store.(*Store)
	if !ok {
		return fmt.Errorf("sqlite: the store of the queue, or of the body's context, is a %T, not a *sqlite.Store", store)
	}
	t := newMoment(ctx, tx.Query, queue)
	var file string
	if t.get(list{&file}, "select file from pragma_database_list where name = 'main'"); t.err == nil && file != s.w.Path() {
		return fmt.Errorf("%w: %s, not %s", ErrOtherFile, file, s.w.Path())
	}
	fn(t)
	t.announce()
	if t.err != nil {
		return fmt.Errorf("sqlite: %w", t.err)
	}
	return nil
}

// Signal sends a signal to the flow of a key in the transaction of the caller: see [durable.Queue.Signal]. The transaction, the queue and
// errors are as in [Enqueue].
//
//ephemeral:none
func Signal[T any](ctx context.Context, tx *sqlitewriter.Tx, q *durable.Queue[T], key, name string, payload any, uniqueID ...string) error {
	s, err := q.PrepareSignal(key, 0, name, payload, uniqueID...)
	if err != nil {
		return err
	}
	return within(ctx, tx, q.Store(), q.Name(), func(t *moment) { t.signal(s) })
}

// Step is a step of a flow whose effect is in the file of the queue: fn and the record of the step are one transaction of w, so both
// happen once or not at all. Ctx is the context of the item's body, and w is the writer of the item's store. In a later run of the body, Step returns
// nil without a call of fn. If fn returns an error, all is rolled back, and Step returns the error. If the process has lost the item, it returns
// [durable.ErrLeaseLost].
func Step(ctx context.Context, w *sqlitewriter.Writer, name string, fn func(tx *sqlitewriter.Tx) error) error {
	claim := durable.ClaimFrom(ctx)
	return durable.FlowFrom(ctx).Within(ctx, name, func(ctx context.Context, record func() durable.Record) error {
		return w.Tx(ctx, func(inner context.Context, tx *sqlitewriter.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			current := false
			err := within(inner, tx, durable.StoreFrom(ctx), claim.Queue, func(t *moment) { current = t.recordAt(record()) })
			if err == nil && !current {
				err = durable.ErrLeaseLost
			}
			return err
		})
	})
}
