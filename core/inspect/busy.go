package inspect

import (
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// Busy returns what Explain says about the operations that have not ended, each after its key. The oldest come first. A
// limit of 0 means all. It costs as much as Operations, and a call of Explain for each.
func Busy(c core.Inspector, limit int) []string {
	texts := []string{}
	for o := range c.Operations(core.OperationQuery{Status: core.StatusAlive, Limit: limit}) {
		if x, ok := c.Explain(o.ID); ok && x.Status&core.StatusAlive != 0 { // else it has ended meanwhile
			texts = append(texts, strings.TrimPrefix(o.Key+": "+x.String(), ": "))
		}
	}
	return texts
}
