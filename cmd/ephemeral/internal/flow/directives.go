package flow

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// directive is a comment of the program: //ephemeral:ignore, or //ephemeral:raises and names.
type directive struct {
	text string
	line int
	pos  token.Pos
}

// comments collects the directives of a file for its units: one above a unit belongs to it.
func (w *World) comments(f *ast.File, units []*Unit) {
	var all []directive
	for _, g := range f.Comments {
		for _, c := range g.List {
			text, ok := strings.CutPrefix(c.Text, "//ephemeral:")
			if !ok {
				continue
			}
			d := directive{text, w.Fset.Position(c.Pos()).Line, c.Pos()}
			all = append(all, d)
			if i := slices.IndexFunc(units, func(u *Unit) bool { return d.pos <= u.Node.End() }); i >= 0 {
				units[i].directives = append(units[i].directives, d)
			}
		}
	}
	w.at[w.Fset.Position(f.Pos()).Filename] = all
}

// Ignored reports whether the line of a position, or the line above it, says so.
func (w *World) Ignored(pos token.Pos) bool {
	at := w.Fset.Position(pos)
	return slices.ContainsFunc(w.at[at.Filename], func(d directive) bool {
		return d.text == "ignore" && (d.line == at.Line || d.line == at.Line-1)
	})
}

// declared adds what the program declares to raise. A declaration on the line of a raise, or on
// the line above it, stands for what is not known of its name.
func (w *World) declared() {
	for _, u := range w.Units {
		for _, d := range u.directives {
			names, ok := strings.CutPrefix(d.text, "raises ")
			if !ok {
				continue
			}
			fact := Fact{Verb: "raises", API: "//ephemeral:raises", Pos: d.pos, InBody: true}
			for name := range strings.SplitSeq(names, ",") {
				fact.Texts = append(fact.Texts, Text{S: strings.ReplaceAll(strings.TrimSpace(name), "*", Hole)})
			}
			for j := range u.Facts {
				f := &u.Facts[j]
				if line := w.Fset.Position(f.Pos).Line; f.Verb == "raises" && (line == d.line || line == d.line+1) {
					f.Texts = slices.DeleteFunc(f.Texts, func(t Text) bool { return !t.Exact() })
				}
			}
			u.add(fact)
		}
	}
}
