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

// ErrUndecided means that the context ended, or the connection broke, at a moment when it
// cannot be said whether a change has been made. An error without it means that it has not.
var ErrUndecided = errors.New("data: it is not known whether the change has been made")

// An Error is what methods of a [Store] return, and the payload of [Failed].
type Error struct {
	Store string // its name
	Op    string // "save", "load", "has", "delete", "update", "list", "len", "clear" or "close"
	Key   string // or the prefix of a list; "" if it is about all keys, or several
	Err   error  // why it was not done
}

// Error names the store, the operation and the first 64 characters of the key.
func (e *Error) Error() string {
	return fmt.Sprintf("data: store %q: %s %.64q: %s", e.Store, e.Op, e.Key, strings.TrimPrefix(e.Err.Error(), "data: "))
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// A Store keeps values of type V under keys. Keys are any bytes, 1 to [MaxKey] of them;
// their order is that of their bytes. Encoded values have at most [MaxValue] bytes. All
// methods are safe for concurrent use. Errors name the store and the key.
//
// The methods of [core.Lifecycle] are about what signals have asked for: Flush and Drain
// wait for that. Close cancels it and ends the subscriptions. From then on other methods
// return [core.ErrClosed]. Calls of them that have begun are finished as usual: Close does
// not wait for them, so that it can be called everywhere, and the last of them closes the
// engine. If there are none, Close does, and returns the error of the engine; otherwise the
// error is raised only. Every store must be closed.
//
// A function that panics, also that of a Codec, panics in the method that was called.
type Store[K ~string, V any] interface {
	// Save keeps value under key, instead of the one before. It returns when that is
	// durable.
	Save(ctx context.Context, key K, value V) error
	// SaveAll saves all entries; of equal keys, the last. It reads all entries before it
	// saves the first. Engines with transactions save all or none; the others say so.
	SaveAll(ctx context.Context, entries iter.Seq2[K, V]) error
	// Load returns the value of key, and whether there is one.
	Load(ctx context.Context, key K) (value V, ok bool, err error)
	// Has reports whether there is a value.
	Has(ctx context.Context, key K) (bool, error)
	// Delete removes key. It is no error if there is none.
	Delete(ctx context.Context, key K) error
	// Update replaces the value of key by what fn makes of it, unless somebody else has
	// changed it meanwhile: then it calls fn again, with the newer value. Ok says whether
	// there is a value. An error of fn ends Update and nothing changes. Fn runs under no
	// lock and may use the store.
	Update(ctx context.Context, key K, fn func(value V, ok bool) (V, error)) error
	// Keys walks the keys that begin with prefix, in order, and ends with the first
	// error. A key that is there all the time is shown once; one that comes or goes
	// meanwhile, perhaps. The store can be used inside the loop.
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
	// Stats are the counters of the requests by signal. Those that were dropped are
	// counted as Rejected. Direct calls are not counted.
	Stats() core.Stats

	core.Lifecycle
}

// An Entry is a key and its value.
type Entry[K ~string, V any] struct {
	Key   K
	Value V
}
