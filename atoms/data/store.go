package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// Limits of every store.
const (
	// MaxKey is the length of a key in bytes at most. The shortest key has one byte.
	MaxKey = 1024
	// MaxValue is the length of an encoded value in bytes at most.
	MaxValue = 16 << 20
)

// ErrUndecided means that nobody knows whether a change has been made, because the context ended
// or the connection broke meanwhile. After any other error the change has not been made.
var ErrUndecided = errors.New("data: it is not known whether the change has been made")

// An Error is what methods of a [Store] return, and the payload of [Failed].
type Error struct {
	Store string // its name
	Op    string // "save", "load", "has", "delete", "update", "list", "len", "clear" or "close"
	Key   string // or the prefix of a list; "" if it is about several keys or all
	Err   error  // the reason
}

// Error names the store, the operation and the first 64 characters of the key.
func (e *Error) Error() string {
	return fmt.Sprintf("data: store %q: %s %.64q: %s", e.Store, e.Op, e.Key, strings.TrimPrefix(e.Err.Error(), "data: "))
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// A Store keeps values of type V under keys. A key is any 1 to [MaxKey] bytes, and keys have the
// order of their bytes. An encoded value has at most [MaxValue] bytes. All methods are safe for
// concurrent use. Errors name the store and the key.
//
// The methods of [core.Lifecycle] are about the requests of signals: Flush and Drain wait for
// them, Close cancels them. After Close all other methods return [core.ErrClosed]. Close does not
// wait for calls that run, so it can be called everywhere. They are finished as usual, and the last
// one closes the engine. If no call runs, Close closes the engine and returns its error. An error
// of closing the engine is also raised. Every store must be closed.
//
// If a function of yours panics, also one of a Codec, the panic comes out of the method that you
// called.
type Store[K ~string, V any] interface {
	// Save keeps value under key, and replaces the value before. It returns when the value
	// is durable.
	Save(ctx context.Context, key K, value V) error
	// SaveAll saves all entries. If a key comes several times, its last value counts.
	// SaveAll reads all entries before it saves the first. An engine with transactions
	// saves all or none; an engine without says so.
	SaveAll(ctx context.Context, entries iter.Seq2[K, V]) error
	// Load returns the value of key, and whether there is one.
	Load(ctx context.Context, key K) (value V, ok bool, err error)
	// Has reports whether there is a value.
	Has(ctx context.Context, key K) (bool, error)
	// Delete removes key. It is no error if there is none.
	Delete(ctx context.Context, key K) error
	// Update calls fn with the value of key, and saves what fn returns. If the value was
	// changed meanwhile, Update calls fn again, with the newer value. Ok says whether there
	// is a value. If fn returns an error, so does Update, and nothing changes. Fn runs
	// under no lock and may use the store.
	Update(ctx context.Context, key K, fn func(value V, ok bool) (V, error)) error
	// Keys walks the keys that begin with prefix, in order, and ends with the first
	// error. A key that is there all the time is shown once. A key that is saved or deleted
	// meanwhile may be shown or not. The store can be used inside the loop.
	Keys(ctx context.Context, prefix string) iter.Seq2[K, error]
	// All walks the entries whose keys begin with prefix, like Keys.
	All(ctx context.Context, prefix string) iter.Seq2[Entry[K, V], error]
	// Len counts the keys.
	Len(ctx context.Context) (int, error)
	// Clear removes all keys.
	Clear(ctx context.Context) error
	// Name is that of the options.
	Name() string
	// Sink is that of the options, or the one of the store.
	Sink() *core.Sink
	// Stats are the counters of the requests of signals. Dropped requests are counted as
	// Rejected. Direct calls are not counted.
	Stats() core.Stats

	core.Lifecycle
}

// An Entry is a key and its value.
type Entry[K ~string, V any] struct {
	Key   K
	Value V
}
