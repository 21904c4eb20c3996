// Package names has names that a program shares.
package names

import (
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const Closed = "warehouse.closed"

// Prefix is a variable, so that its value is not constant.
var Prefix = "audit"

type File struct{ Name string }

var Saved = signals.NewKind[File]("file.saved")

// Doors are names as keys.
var Doors = map[string]int{"door.open": 1}

// Announce raises a name that is put together.
func Announce(on signals.Raiser, what, state string) { on.Raise(what + "." + state) }
