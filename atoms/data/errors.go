package data

import (
	"fmt"
	"strings"
)

// An Error is what methods of a [Store] return, and the payload of [Failed].
type Error struct {
	Store string // its name
	Op    string // "save", "load", ...: what was to be done
	Key   string // or the prefix of a walk; "" if it was about all keys, or several
	Err   error  // why it was not done
}

// Error names the store, the operation and the beginning of the key.
func (e *Error) Error() string {
	about := e.Op
	if e.Key != "" {
		about += " " + shorten(e.Key)
	}
	return fmt.Sprintf("data: store %q: %s: %s", e.Store, about, strings.TrimPrefix(e.Err.Error(), "data: "))
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func shorten(key string) string {
	const most = 64
	if len(key) <= most {
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("%q... (%d bytes)", key[:most], len(key))
}

func checkKey(key string) error {
	if len(key) < 1 || len(key) > MaxKey {
		return fmt.Errorf("data: a key must have 1 to %d bytes, not %d", MaxKey, len(key))
	}
	return nil
}

func checkValue(encoded []byte) error {
	if len(encoded) > MaxValue {
		return fmt.Errorf("data: an encoded value must have at most %d bytes, not %d", MaxValue, len(encoded))
	}
	return nil
}
