package sqlitewriter

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Errors of writes. Use errors.Is: what is returned says more. Errors of SQLite are in the
// chain as well.
var (
	// ErrNoSpace: the disk is full. Nothing of the write is stored.
	ErrNoSpace = errors.New("sqlitewriter: no space left for the database")
	// ErrNotAllowed: a statement would begin or end a transaction, attach a file or change
	// settings of the writer's connection. Use [Writer.Batch] and [Writer.Tx] for transactions.
	ErrNotAllowed = errors.New("sqlitewriter: a write may not control transactions, attach files or change settings of the connection")
	// ErrTxTimeout is the cause with which the context of a function of [Writer.Tx] ends
	// after [Options.TxTimeout].
	ErrTxTimeout = errors.New("sqlitewriter: transaction took longer than Options.TxTimeout")
	// ErrType: a key of [Read] has a value of another type.
	ErrType = errors.New("sqlitewriter: the value of the key is not a")
)

var (
	errEmpty     = errors.New("there is no statement")
	errUndecided = errors.New("the write may be stored or not")
)

// code is SQLite's primary result code of an error; 0 if it has none.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// explain makes the error that the caller of a write gets from one of a statement.
func (f *file) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || code(err) == lib.SQLITE_INTERRUPT):
		return context.Cause(ctx)
	case code(err) == lib.SQLITE_FULL:
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	case code(err) == lib.SQLITE_AUTH:
		err = fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return f.named(err)
}

// named adds the name of the file to an error.
func (f *file) named(err error) error {
	return fmt.Errorf("sqlitewriter: %q: %w", f.opts.Name, err)
}
