package sqlitewriter

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/ephemeralgo/ephemeral/core"
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
	// ErrTxDone: a [Tx] is used after its end, or with a context that is not made from that
	// of its function.
	ErrTxDone = errors.New("sqlitewriter: the transaction is over, or the context is not made from that of its function")
	// ErrType: a key of [Read] has a value of another type.
	ErrType = errors.New("sqlitewriter: the value of the key is not a")
)

// code is SQLite's primary result code of an error; 0 if it has none.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// explain makes the error that the caller of a write gets.
func (f *file) explain(ctx context.Context, err error) error {
	_, named := errors.AsType[*fileError](err)
	switch {
	case err == nil || named:
		return err
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || code(err) == lib.SQLITE_INTERRUPT):
		return context.Cause(ctx)
	}
	switch code(err) {
	case lib.SQLITE_FULL:
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	case lib.SQLITE_AUTH:
		err = fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return f.named("", err)
}

// fileError is an error with the name of the file.
type fileError struct {
	name, says string
	error
}

func (e *fileError) Error() string {
	return fmt.Sprintf("sqlitewriter: %q: %s%v", e.name, e.says, e.error)
}
func (e *fileError) Unwrap() error { return e.error }

func (f *file) named(says string, err error) error { return &fileError{f.opts.Name, says, err} }

// wouldDeadlock is the error of a call that would wait for the transaction that makes it.
func (f *file) wouldDeadlock(call string) error {
	return f.named(call+" inside a transaction or a signal handler of the same writer: ", core.ErrWouldDeadlock)
}
