package check

import (
	"fmt"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// Calls returns the calls that cannot be right, whatever the rest of the program does, in the
// packages that were asked for.
func Calls(w *flow.World) (all []Finding) {
	for _, f := range w.Asked() {
		message := ""
		switch f.Verb {
		case "view":
			message = f.API + " returns a view and changes nothing: enqueue with what it returns"
		case "waits":
			message = fmt.Sprintf("%s waits for the coordinator %s, whose body this is, but not with the context of the body: it returns core.ErrWouldDeadlock", f.API, f.On)
		case "release":
			message = f.API + " without a lease holds the signal until it is released, and the release is not kept"
			if f.Helper.IsValid() {
				message = fmt.Sprintf("%s returns the release of a signal that is held without a lease (%s), and the release is not kept", f.API, place(w, f.Helper))
			}
		default:
			continue
		}
		all = append(all, found(w, f, flow.Text{}, "call", true, message)...)
	}
	return all
}
