// Package analyzer finds calls of the library that cannot be right, one package at a time. It
// is for programs that run several analyzers. For one package at a time, the command does
// the same:
//
//	go vet -vettool=$(which ephemeral) ./...
//
// Names of signals are not checked here: whether something raises a signal is only known of a
// whole program. The command ephemeral vet does that.
package analyzer

import (
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/check"
	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// Analyzer reports
//
//   - a view of a coordinator or a queue, such as Lane or Cost, that is not used;
//   - a signal that is held without a lease, and whose release is not kept, except in tests;
//   - a body that waits for its own coordinator with another context than its own: the
//     operation keeps its slot, and so may wait for ever.
var Analyzer = &analysis.Analyzer{
	Name: "ephemeral",
	Doc:  "report calls of github.com/ephemeralgo/ephemeral that cannot be right",
	URL:  "https://pkg.go.dev/github.com/ephemeralgo/ephemeral/cmd/ephemeral",
	Run: func(p *analysis.Pass) (any, error) {
		pkg := &packages.Package{PkgPath: p.Pkg.Path(), Types: p.Pkg, Syntax: p.Files, TypesInfo: p.TypesInfo}
		w := &flow.World{Fset: p.Fset, Packages: []*flow.Package{{Package: pkg, Asked: true}}}
		w.Index()
		for _, f := range check.Calls(w) {
			p.Report(analysis.Diagnostic{Pos: f.Pos, Message: f.Message})
		}
		return nil, nil
	},
}
