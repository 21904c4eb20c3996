package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Limits of every store.
const (
	// MaxKey is the length of the longest key in bytes. The shortest key has one byte.
	MaxKey = 1024
	// MaxValue is the length of the longest encoded value in bytes.
	MaxValue = 16 << 20
)

// ErrUndecided means that it is not known whether a change was made: the context ended or the
// connection broke before the answer came. After any other error, the change was not made.
var ErrUndecided = errors.New("data: it is not known whether the change has been made")

// An Error is the error of a method of a [Store], and the payload of [Failed].
type Error struct {
	Store string // name of the store
	Op    string // "save", "load", "has", "delete", "update", "list", "len", "clear" or "close"
	Key   string // the key, or the prefix of a list; "" stands for several keys or for all
	Err   error  // the reason
}

// Error names the store, the operation and the first 64 characters of the key.
func (e *Error) Error() string {
	return fmt.Sprintf("data: store %q: %s %.64q: %s", e.Store, e.Op, e.Key, strings.TrimPrefix(guard.Text(e.Err), "data: "))
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// A Store keeps values of type V by key. A key is any 1 to [MaxKey] bytes. Keys are ordered by their
// bytes. An encoded value has at most [MaxValue] bytes. All methods are safe for concurrent use.
// Errors name the store and the key.
//
// The methods of [core.Lifecycle] are for requests by signals: Flush and Drain wait for requests,
// Close cancels them. After Close, all other methods return [core.ErrClosed]. Close does not wait
// for direct calls that run, so it can be called everywhere. Such calls go on, and the last one
// closes the engine. If no call runs, Close closes the engine and returns its error. An error of the
// engine's Close is also raised as [Failed]. Every store must be closed.
//
// If your own function panics, the method that called it panics. This holds for a Codec, too.
type Store[K ~string, V any] interface {
	// Save stores value under key. It replaces an earlier value. It returns when the value is
	// durable.
	Save(ctx context.Context, key K, value V) error
	// SaveAll saves all entries. If a key comes several times, its last value counts.
	// SaveAll reads all entries before it saves the first. An engine with transactions saves
	// all or none. Other engines document what they do.
	SaveAll(ctx context.Context, entries iter.Seq2[K, V]) error
	// Load returns the value of key, and whether there is one.
	Load(ctx context.Context, key K) (value V, ok bool, err error)
	// Has reports whether there is a value.
	Has(ctx context.Context, key K) (bool, error)
	// Delete removes key. It is no error if the key has no value.
	Delete(ctx context.Context, key K) error
	// Update calls fn with the value of key, and saves the result. Ok is false if the key has
	// no value. If the value was changed meanwhile, Update calls fn again with the newer value.
	// If fn returns an error, Update returns it, and nothing changes. Fn runs under no lock and
	// may use the store.
	Update(ctx context.Context, key K, fn func(value V, ok bool) (V, error)) error
	// Keys yields the keys that begin with prefix, in order. It ends after the first error. A
	// key that exists during the whole loop comes once. A key that is saved or deleted during
	// the loop may come or not. The store can be used inside the loop.
	Keys(ctx context.Context, prefix string) iter.Seq2[K, error]
	// All yields the entries whose keys begin with prefix, like Keys.
	All(ctx context.Context, prefix string) iter.Seq2[Entry[K, V], error]
	// Len counts the keys.
	Len(ctx context.Context) (int, error)
	// Clear removes all keys.
	Clear(ctx context.Context) error
	// Sink is Options.Sink, or the sink that was made in its place.
	Sink() *signals.Sink
	// Stats returns the counters of requests by signals. Dropped requests are counted as
	// Rejected. Direct calls are not counted.
	Stats() core.Stats

	core.Lifecycle
}

// An Entry is a key and its value.
type Entry[K ~string, V any] struct {
	Key   K
	Value V
}
