package data

import "github.com/ephemeralgo/ephemeral/core"

// The key of all these signals is the storage key. The first three are requests to the store of
// that name, if its options have the default prefixes. The others are answers. An answer has its
// request as cause: see [core.Raiser]. Direct calls of Save, SaveAll, Update, Delete and Clear raise
// them as well, when the change is durable.

// Save asks for the payload to be saved: save.data.NAME, answered by [Saved] or [Failed].
func Save[V any](name string) core.Kind[V] { return kind[V]("save", name) }

// Load asks for the value: load.data.NAME, answered by [Loaded] or [Failed]. The payload of Load and
// [Delete] does not matter, so core.Sink.RaiseKey works too.
func Load(name string) core.Kind[struct{}] { return kind[struct{}]("load", name) }

// Delete asks for the key to be removed: delete.data.NAME, answered by [Deleted] or [Failed].
func Delete(name string) core.Kind[struct{}] { return kind[struct{}]("delete", name) }

// Saved says that the value of the key has been saved: saved.data.NAME. It does not carry the
// value, which may be large, and may have changed again.
func Saved(name string) core.Kind[struct{}] { return kind[struct{}]("saved", name) }

// Loaded has the value that [Load] asked for: loaded.data.NAME.
func Loaded[V any](name string) core.Kind[Found[V]] { return kind[Found[V]]("loaded", name) }

// Deleted says that the key has no value any more: deleted.data.NAME. Clear raises it with the key
// "": no key has a value any more.
func Deleted(name string) core.Kind[struct{}] { return kind[struct{}]("deleted", name) }

// Initialized is raised by [New], when the store is open and takes requests:
// initialized.data.NAME, with the name as key.
func Initialized(name string) core.Kind[struct{}] { return kind[struct{}]("initialized", name) }

// Failed has the error, an [*Error], of a request or a direct call: error.data.NAME. With the key ""
// it is about several keys or all.
func Failed(name string) core.Kind[error] { return kind[error]("error", name) }

// A Found is what [Load] found: the value of the key, or with OK false none.
type Found[V any] struct {
	Value V
	OK    bool
}

func kind[P any](verb, name string) core.Kind[P] { return core.NewKind[P](verb + ".data." + name) }
