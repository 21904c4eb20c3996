package data

import (
	"context"
	"iter"
)

// An Engine keeps bytes under keys. [New] makes a [Store] of it and checks keys and sizes
// before it calls the engine. All methods must be safe for concurrent use, and return when
// what they change is durable. If their context has ended they return its cause and change
// nothing. An error after which the change may have been made all the same wraps [ErrUndecided].
type Engine interface {
	// Save keeps the items, instead of those before. There is at least one, and no two have
	// the same key. If the engine has transactions, it saves all of them or none.
	Save(ctx context.Context, items []Item) error
	// Load returns the value of key, and whether there is one. The caller owns the slice.
	Load(ctx context.Context, key string) (value []byte, ok bool, err error)
	// Has reports whether there is a value.
	Has(ctx context.Context, key string) (bool, error)
	// Swap keeps value under key if the one before is still old, or, with ok false, if
	// there is still none. It reports whether it did. Old is what Load has returned.
	Swap(ctx context.Context, key string, old []byte, ok bool, value []byte) (swapped bool, err error)
	// Delete removes key, if it is there.
	Delete(ctx context.Context, key string) error
	// List walks the items whose keys begin with prefix, in the order of the bytes of
	// their keys, and ends with the first error; the values can be left out unless
	// wanted. The engine can be used inside the loop.
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
