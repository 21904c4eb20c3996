package data

import (
	"context"
	"iter"
)

// An Engine stores bytes by key. [New] makes a [Store] of it: the Store checks keys and sizes
// before it calls the engine. All methods must be safe for concurrent use. A method returns when
// its change is durable. If its context has ended, it returns the cause and changes nothing. If
// there is an error, but the change may have been made, the error must wrap [ErrUndecided].
type Engine interface {
	// Save stores the items. It replaces earlier values. There is at least one item, and all
	// keys differ. An engine with transactions saves all items or none.
	Save(ctx context.Context, items []Item) error
	// Load returns the value of key, and whether there is one. The caller owns the slice.
	Load(ctx context.Context, key string) (value []byte, ok bool, err error)
	// Has reports whether there is a value.
	Has(ctx context.Context, key string) (bool, error)
	// Swap compares the present value with old, and stores value if they are equal. If ok is
	// false, it stores value if the key has no value. It reports whether it has stored
	// value. Old comes from Load.
	Swap(ctx context.Context, key string, old []byte, ok bool, value []byte) (swapped bool, err error)
	// Delete removes key, if it exists.
	Delete(ctx context.Context, key string) error
	// List yields the items whose keys begin with prefix, in the order of the bytes of the
	// keys. It ends after the first error. If values is false, it may leave out the values.
	// The engine must be usable inside the loop.
	List(ctx context.Context, prefix string, values bool) iter.Seq2[Item, error]
	// Len counts the keys.
	Len(ctx context.Context) (int, error)
	// Clear removes all keys.
	Clear(ctx context.Context) error
	// Close releases what the engine holds. It is called once, when no other call runs.
	Close() error
}

// An Item is a key and its encoded value.
type Item struct {
	Key   string
	Value []byte
}
