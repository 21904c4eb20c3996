package data

import (
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The key of all these signals is the storage key. The first three are requests to the store of
// that name, if its options have the default prefixes. The others are answers. The request is the
// cause of its answer: [signals.Signal.Path] of the answer lists the names of both. Direct calls of
// Save, SaveAll, Update, Delete and Clear raise answers as well, when the change is durable.
// Answers to direct calls have no cause.

// Save asks the store to save the payload: save.data.NAME. The answer is [Saved] or [Failed].
//
//ephemeral:is save.data.{name}
func Save[V any](name string) signals.Kind[V] { return kind[V]("save", name) }

// Load asks for the value: load.data.NAME. The answer is [Loaded] or [Failed]. The payload of Load
// and [Delete] does not matter, so signals.Sink.RaiseKey works too.
//
//ephemeral:is load.data.{name}
func Load(name string) signals.Kind[struct{}] { return kind[struct{}]("load", name) }

// Delete asks the store to remove the key: delete.data.NAME. The answer is [Deleted] or [Failed].
//
//ephemeral:is delete.data.{name}
func Delete(name string) signals.Kind[struct{}] { return kind[struct{}]("delete", name) }

// Saved says that the value of the key has been saved: saved.data.NAME. It has no payload: the value
// may be large, and may have changed again.
//
//ephemeral:is saved.data.{name}
func Saved(name string) signals.Kind[struct{}] { return kind[struct{}]("saved", name) }

// Loaded has the value that [Load] asked for: loaded.data.NAME.
//
//ephemeral:is loaded.data.{name}
func Loaded[V any](name string) signals.Kind[Found[V]] { return kind[Found[V]]("loaded", name) }

// Deleted says that the key has no value any more: deleted.data.NAME. Clear raises it with the key
// "": no key has a value any more.
//
//ephemeral:is deleted.data.{name}
func Deleted(name string) signals.Kind[struct{}] { return kind[struct{}]("deleted", name) }

// Initialized is raised by [New] when the store is open and accepts requests:
// initialized.data.NAME. Its key is the name.
//
//ephemeral:is initialized.data.{name}
func Initialized(name string) signals.Kind[struct{}] { return kind[struct{}]("initialized", name) }

// Failed says that a request, or a direct call that changes values, has failed: error.data.NAME.
// The payload is the error, an [*Error]. The key "" stands for several keys or all.
//
//ephemeral:is error.data.{name}
func Failed(name string) signals.Kind[error] { return kind[error]("error", name) }

// A Found is the payload of [Loaded]: the value of the key. OK is false if there is none.
type Found[V any] struct {
	Value V
	OK    bool
}

func kind[P any](verb, name string) signals.Kind[P] {
	return signals.NewKind[P](verb + ".data." + name)
}
