package data

import "fmt"

// An Error is what methods of a [Store] return, and the payload of [Failed].
type Error struct {
	Store string // its name
	Op    string // "save", "load", "has", "delete", "update", "list", "len", "clear" or "close"
	Key   string // or the prefix of a list; "" if it is about all keys, or several
	Err   error  // why it was not done
}

// Error names the store, the operation and the begin of the key.
func (e *Error) Error() string {
	return fmt.Sprintf("data: store %q: %s %.64q: %v", e.Store, e.Op, e.Key, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
