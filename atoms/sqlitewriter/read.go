package sqlitewriter

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// cached holds a value of type V. It keeps V even if V is an interface type.
type cached[V any] struct{ value V }

// Read returns the value of a key. If the value is not in memory, Read calls load and keeps the
// result. If load returns an error, Read returns the error, and nothing is kept. So the next Read
// looks for a missing row again. Callers that want the same key at the same time share one load.
// All handles of a file share the values, so do not change a value. If the value of a key has
// another type than V, the error is [ErrType].
//
// Three events make the next Read load the value again: a write that names the key (see
// [Statement] and [Tx.Invalidate]), [Writer.Invalidate], and a signal (see
// [Options.InvalidateOn]). If a load is running at the event, its callers get its value, but the
// value is not kept. Writes of other processes invalidate nothing: see [Options.TTL].
//
// If ctx ends, Read returns the cause of ctx. The context of load has the values of the first
// caller's context. It ends when the contexts of all callers of the load have ended. If load
// panics, the error is a [core.PanicError].
//
//ephemeral:none
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
		err = fmt.Errorf("sqlitewriter: %q: Read of key %q: %w %v", w.opts.Name, key, ErrType, reflect.TypeFor[V]())
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
func (f *file) invalidateOn(s signals.Signal) {
	key, ok := signals.ParseCommand(s.Name, CommandInvalidate)
	if !ok {
		key = s.Key
	}
	if key == "" {
		f.cache.Clear()
	} else {
		f.cache.Remove(key)
	}
}
