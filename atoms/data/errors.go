package data

import (
	"fmt"
	"strings"
)

// An Error is what methods of a [Store] return, and the payload of [Failed].
type Error struct {
	Store string // its name
	Op    string // "save", "load", "has", "delete", "update", "list", "len", "clear" or "close"
	Key   string // or the prefix of a list; "" if it is about all keys, or several
	Err   error  // why it was not done
}

// Error names the store, the operation and the first 64 bytes of the key.
func (e *Error) Error() string {
	about := e.Op
	if short := e.Key[:min(len(e.Key), 64)]; short != e.Key {
		about += fmt.Sprintf(" %q... (%d bytes)", short, len(e.Key))
	} else if e.Key != "" {
		about += fmt.Sprintf(" %q", e.Key)
	}
	return fmt.Sprintf("data: store %q: %s: %s", e.Store, about, strings.TrimPrefix(e.Err.Error(), "data: "))
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
