package data

import (
	"context"
	"iter"
)

// An Engine keeps bytes under keys. [New] makes a [Store] of it, which checks keys and sizes before
// it calls the engine. All methods must be safe for concurrent use. A method returns when its
// change is durable. If its context has ended, it returns the cause and changes nothing. If a
// change may have been made in spite of an error, the error wraps [ErrUndecided].
type Engine interface {
	// Save keeps the items, and replaces the values before. There is at least one item, and
	// all keys differ. An engine with transactions saves all items or none.
	Save(ctx context.Context, items []Item) error
	// Load returns the value of key, and whether there is one. The caller owns the slice.
	Load(ctx context.Context, key string) (value []byte, ok bool, err error)
	// Has reports whether there is a value.
	Has(ctx context.Context, key string) (bool, error)
	// Swap keeps value under key if the value before is still old. If ok is false, it keeps
	// value if there is still none. It reports whether it did. Old comes from Load.
	Swap(ctx context.Context, key string, old []byte, ok bool, value []byte) (swapped bool, err error)
	// Delete removes key, if it is there.
	Delete(ctx context.Context, key string) error
	// List walks the items whose keys begin with prefix, in the order of the bytes of the
	// keys, and ends with the first error. If values is false, it may leave out the values.
	// The engine can be used inside the loop.
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
