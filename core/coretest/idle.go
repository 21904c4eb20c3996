package coretest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
)

// idleShown is how many operations of a coordinator Idle explains.
const idleShown = 20

// Idle checks that no operation of these coordinators is pending, running or suspended. If one is, the
// error says for each why it waits, for the first 20 of a coordinator; see
// [core.Inspector]'s Explain. In a bubble, call synctest.Wait first.
func Idle(t testing.TB, coordinators ...core.Inspector) {
	t.Helper()
	for _, c := range coordinators {
		var busy strings.Builder
		count := 0
		for o := range c.Operations(core.OperationQuery{Status: core.StatusAlive}) {
			x, ok := c.Explain(o.ID)
			if !ok || x.Status&core.StatusAlive == 0 {
				continue // it has ended meanwhile
			}
			if count++; count <= idleShown {
				fmt.Fprintf(&busy, "\n%s", x)
			}
		}
		if count > idleShown {
			fmt.Fprintf(&busy, "\nand %d more", count-idleShown)
		}
		Check(t, count == 0, "%s is not idle:%s", c.Name(), busy.String())
	}
}
