package coretest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// idleShown is how many operations of a coordinator Idle explains.
const idleShown = 20

// Idle checks that no operation of these coordinators is pending, running or suspended. If one is, the
// error says for each why it waits, for the first 20 of a coordinator; see
// [core.Inspector]'s Explain. In a bubble, call synctest.Wait first.
func Idle(t testing.TB, coordinators ...core.Inspector) {
	t.Helper()
	for _, c := range coordinators {
		busy := inspect.Busy(c, 0)
		if more := len(busy) - idleShown; more > 0 {
			busy = append(busy[:idleShown], fmt.Sprintf("and %d more", more))
		}
		Check(t, len(busy) == 0, "%s is not idle:\n%s", c.Name(), strings.Join(busy, "\n"))
	}
}
