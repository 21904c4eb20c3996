package sqlitewriter

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"

	"github.com/ephemeralgo/ephemeral/core"
)

// cached holds a value with its type, which may be that of an interface.
type cached[V any] struct{ value V }

// Read returns the value of a key. If it is not in memory, load reads it, and Read keeps it.
// If load returns an error, nothing is kept. So the next Read looks for a missing row again.
// Callers that want the same key at the same time share one load. All handles of a file share
// the values. It is an error if the value of a key has another type than V.
//
// These events make the next Read load the value again: a write that names the key (see
// [Statement] and [Tx.Invalidate]), [Writer.Invalidate], and a signal (see
// [Options.InvalidateOn]). If a load began before the event, its callers get its value, but the
// value is not kept. Writes of other processes invalidate nothing.
//
// The context of load has the values of ctx, and ends when the contexts of all waiting callers
// have ended. If ctx ends, Read returns its cause. Values are shared, so do not change them.
func Read[V any](ctx context.Context, w *Writer, key string, load func(ctx context.Context, db *sql.DB) (V, error)) (V, error) {
	if load == nil {
		panic("sqlitewriter: Read needs a function")
	}
	got, err := w.cache.GetOrLoad(ctx, key, func(ctx context.Context, _ string) (any, error) {
		value, err := load(ctx, w.readers)
		return cached[V]{value}, err
	})
	c, ok := got.(cached[V])
	if err == nil && !ok {
		err = fmt.Errorf("sqlitewriter: %q: Read of key %q: %w %v", w.Name(), key, ErrType, reflect.TypeFor[V]())
	}
	return c.value, err
}

// invalidate makes Read load keys again.
func (f *file) invalidate(keys ...string) {
	for _, key := range keys {
		f.cache.Remove(key)
	}
}

// invalidateOn handles a signal that matches [Options.InvalidateOn].
func (f *file) invalidateOn(s core.Signal) {
	key, ok := core.ParseCommand(s.Name, CommandInvalidate)
	if !ok {
		key = s.Key
	}
	if key == "" {
		f.cache.Clear()
	} else {
		f.cache.Remove(key)
	}
}
