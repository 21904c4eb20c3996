package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// refusals are primary result codes of SQLite. With them, a statement was refused or interrupted,
// and was not committed: ERROR, BUSY, LOCKED, READONLY, INTERRUPT, FULL, TOOBIG, CONSTRAINT,
// MISMATCH, AUTH and RANGE.
var refusals = []int{1, 5, 6, 8, 9, 13, 18, 19, 20, 23, 25}

// written returns the error of a write. If the write may have been stored, the error is a
// [data.ErrUndecided] as well.
func written(ctx context.Context, err error) error {
	if err == nil || isDecided(ctx, err) {
		return err
	}
	return fmt.Errorf("%w: %w", data.ErrUndecided, err)
}

func isDecided(ctx context.Context, err error) bool {
	is := func(target error) bool { return guard.Is(err, target) }
	sqlite, ok := guard.As[interface {
		error
		Code() int
	}](err)
	switch {
	case is(groupcommit.ErrUndecided):
		return false
	case ctx.Err() != nil && is(context.Cause(ctx)):
		return true
	}
	return ok && slices.Contains(refusals, sqlite.Code()&0xff) || is(core.ErrClosed) || is(core.ErrStopped) || is(core.ErrWouldDeadlock) || is(sqlitewriter.ErrMoved)
}

// reading returns the error of a read. If ctx has ended, it is the cause of ctx.
func reading(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
