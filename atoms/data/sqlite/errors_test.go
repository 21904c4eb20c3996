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

// An error says that the write may have been made, unless that is impossible.
func TestUndecided(t *testing.T) {
	why := errors.New("ended on purpose")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for err, undecided := range map[error]bool{
		codeError(10): true, codeError(10 | 4<<8): true, // SQLITE_IOERR, SQLITE_IOERR_FSYNC
		codeError(13): false, codeError(19 | 6<<8): false, // SQLITE_FULL, SQLITE_CONSTRAINT_PRIMARYKEY
		errors.New("bad connection"): true, core.ErrClosed: false, why: false, sqlitewriter.ErrMoved: false,
		fmt.Errorf("%w: %w", sqlitewriter.ErrBusy, codeError(5)): false,
		fmt.Errorf("%w: %w", groupcommit.ErrUndecided, why):      true,
	} {
		got := written(ended, err)
		require.Equal(t, undecided, errors.Is(got, data.ErrUndecided), "%v", err)
		require.ErrorIs(t, got, err)
	}
}
