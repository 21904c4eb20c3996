package check

import (
	"go/token"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/analyzer"
	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// Calls returns what package analyzer finds in the packages that were asked for.
func Calls(w *flow.World) (all []Finding) {
	for _, p := range w.Packages {
		if p.Asked {
			analyzer.Check(p.Syntax, p.TypesInfo, func(pos token.Pos, message string) {
				if !w.Ignored(pos) {
					all = append(all, at(w, pos, "call", true, "%s", message))
				}
			})
		}
	}
	return all
}
