package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
)

type codeError int

func (e codeError) Error() string { return fmt.Sprint("code ", int(e)) }
func (e codeError) Code() int     { return int(e) }

// An error says that the write may have been made unless that is impossible.
func TestUndecided(t *testing.T) {
	why := errors.New("ended on purpose")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, c := range []struct {
		ctx       context.Context
		err       error
		undecided bool
	}{
		{t.Context(), nil, false},
		{t.Context(), codeError(10), true},        // SQLITE_IOERR
		{t.Context(), codeError(10 | 4<<8), true}, // SQLITE_IOERR_FSYNC
		{t.Context(), errors.New("bad connection"), true},
		{t.Context(), codeError(19 | 6<<8), false}, // SQLITE_CONSTRAINT_PRIMARYKEY
		{t.Context(), codeError(18), false},
		{t.Context(), fmt.Errorf("x: %w", sqlitewriter.ErrNoSpace), false},
		{t.Context(), core.ErrClosed, false},
		{ended, why, false},
		{ended, codeError(10), true},
		{ended, fmt.Errorf("%w: %w", groupcommit.ErrUndecided, why), true},
	} {
		err := written(c.ctx, c.err)
		require.Equal(t, c.undecided, errors.Is(err, data.ErrUndecided), "%v", c.err)
		require.ErrorIs(t, err, c.err)
	}
}
