// Package mapping is the command ephemeral map.
package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
)

// A Signal is a name that the program raises, with the places that raise it and that read it.
type Signal struct {
	Name   string  `json:"name"` // "..." stands for a part that is data
	Raised []Place `json:"raised"`
	Read   []Place `json:"read"`
}

// A Place is where a signal is raised or read. A package of the library is a place without a
// file.
type Place struct {
	Package string `json:"package"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	API     string `json:"api"`               // such as Raise, Subscribe or CancelOn
	Pattern string `json:"pattern,omitempty"` // that matches the name
}

// Select says which signals and packages the map shows.
type Select struct {
	Signal, Package string // patterns; "" means all
	All             bool   // also readers of all signals, such as Subscribe("*")
}

// Signals returns the signals of the packages that were asked for, by name. What the library
// raises is there if somebody reads it.
func Signals(w *flow.World, s Select) []Signal {
	byName, linked := map[string]*Signal{}, map[string]bool{}
	for _, p := range w.Packages {
		if p.Asked {
			maps.Copy(linked, p.Deps)
		}
	}
	facts := append(w.Asked(), w.Linked(linked)...)
	for f, t := range flow.Parts(facts, "raises") {
		if t.S == "" || t.Open() || strings.Contains(t.S, flow.Known) {
			continue
		}
		if byName[t.S] == nil {
			byName[t.S] = &Signal{Name: t.String()}
		}
		byName[t.S].Raised = append(byName[t.S].Raised, place(w, f))
	}
	for f, t := range flow.Parts(facts, "pattern") {
		if strings.Trim(t.S, flow.Hole+flow.Known) == "" || strings.Trim(t.S, "*") == "" && !s.All {
			continue
		}
		p := place(w, f)
		p.Pattern = t.String()
		for name, signal := range byName {
			if flow.Match(t.S, name, false) {
				signal.Read = append(signal.Read, p)
			}
		}
	}
	var all []Signal
	for _, key := range slices.Sorted(maps.Keys(byName)) {
		if signal := byName[key]; signal.selected(s) {
			signal.Raised, signal.Read = sorted(signal.Raised), sorted(signal.Read)
			all = append(all, *signal)
		}
	}
	return all
}

// place is where a fact is. What a package of the library does by itself has no unit.
func place(w *flow.World, f flow.Fact) Place {
	if f.Unit == nil {
		return Place{Package: roles.Prefix + f.Dir, API: f.API}
	}
	at := w.At(f.Pos)
	return Place{Package: f.Unit.Pkg.PkgPath, File: at.Filename, Line: at.Line, API: f.API}
}

// selected reports whether the map shows the signal. One that only the library raises is there
// if it is read.
func (g *Signal) selected(s Select) bool {
	own := slices.ContainsFunc(g.Raised, func(p Place) bool { return p.File != "" })
	in := func(p Place) bool { return s.Package == "" || flow.Match(s.Package, p.Package, false) }
	return (own || len(g.Read) > 0) && (s.Signal == "" || flow.Match(s.Signal, g.Name, false)) &&
		(slices.ContainsFunc(g.Raised, in) || slices.ContainsFunc(g.Read, in))
}

func sorted(all []Place) []Place {
	slices.SortFunc(all, func(a, b Place) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.File, b.File), a.Line-b.Line,
			strings.Compare(a.API, b.API), strings.Compare(a.Pattern, b.Pattern))
	})
	return slices.Compact(all)
}

// Mermaid draws the signals as a flowchart. An arrow leads from a package that raises signals
// to a package that reads them. Signals that nobody reads have no arrow.
func Mermaid(signals []Signal) string {
	type edge struct{ from, to string }
	labels := map[edge][]string{}
	nodes := map[string]bool{}
	for _, s := range signals {
		for _, from := range s.Raised {
			nodes[from.Package] = true
			for _, to := range s.Read {
				nodes[to.Package] = true
				e := edge{from.Package, to.Package}
				if !slices.Contains(labels[e], s.Name) {
					labels[e] = append(labels[e], s.Name)
				}
			}
		}
	}
	names := slices.Sorted(maps.Keys(nodes))
	var text strings.Builder
	text.WriteString("flowchart LR\n")
	common := commonDir(names)
	for i, n := range names {
		fmt.Fprintf(&text, "  p%d[%q]\n", i, shown(n, common))
	}
	for i, from := range names {
		for j, to := range names {
			if l := labels[edge{from, to}]; len(l) > 0 {
				fmt.Fprintf(&text, "  p%d -- %q --> p%d\n", i, strings.Join(l, "<br>"), j)
			}
		}
	}
	return text.String()
}

// shown is the name of a package in a map: without the path of the library, and without what
// all other packages have in common.
func shown(pkg, common string) string {
	if dir := roles.Dir(pkg); dir != "" {
		return dir
	}
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(pkg, common), "/"), path.Base(pkg))
}

// commonDir is the longest path that is the beginning of all packages of the program.
func commonDir(pkgs []string) (common string) {
	for _, p := range pkgs {
		if roles.Dir(p) != "" {
			continue
		}
		for common = cmp.Or(common, p); common != "." && !strings.HasPrefix(p+"/", common+"/"); {
			common = path.Dir(common)
		}
	}
	return common
}
