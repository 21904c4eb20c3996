// Package check finds names in a program that cannot be right.
package check

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// Finding is a fault, or something that a reader should know. Only a sure one is a fault.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Check   string `json:"check"`
	Message string `json:"message"`
	Nearest string `json:"nearest,omitempty"` // what was probably meant
	Sure    bool   `json:"sure"`

	Pos token.Pos `json:"-"`
}

// String is the finding as one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// program is what one program of the world does.
type program struct {
	w     *flow.World
	root  *flow.Unit
	facts []flow.Fact       // also of the library
	units []*flow.Unit      // by place
	names map[string][]name // by kind: "signal", "lane" and "class"
	exact map[string]bool   // the same names with their kind before them, for speed
	data  map[string][]flow.Fact
}

// name is a name that the program raises or defines.
type name struct {
	flow.Text
	fact flow.Fact
}

// kinds of names, by the verb that reads them, and by the verb that makes them.
var (
	kinds = map[string]string{"pattern": "signal", "lane": "lane", "class": "class"}
	makes = map[string]string{"raises": "signal", "defines lane": "lane", "defines class": "class"}
)

func newProgram(w *flow.World, root *flow.Unit) *program {
	p := &program{w: w, root: root, names: map[string][]name{"lane": {{Text: flow.Text{S: "normal"}}}}, data: map[string][]flow.Fact{}, exact: map[string]bool{}}
	p.units = w.Reach(root)
	for _, u := range p.units {
		p.facts = append(p.facts, u.Facts...)
	}
	p.facts = append(p.facts, w.Linked(root.Pkg.Deps)...) // later, because the first near name counts
	slices.SortFunc(p.units, func(a, b *flow.Unit) int { return int(a.Node.Pos() - b.Node.Pos()) })
	again := []name{} // names made of names
	for verb, kind := range makes {
		for f, t := range flow.Parts(p.facts, verb) {
			switch {
			case t.S == flow.Known, t.S == "":
			case t.Open():
				p.data[kind] = append(p.data[kind], f)
			case !p.inside(t.Pos):
			case strings.Contains(t.S, flow.Known):
				again = append(again, name{t, f})
			default:
				p.names[kind] = append(p.names[kind], name{t, f})
				p.exact[kind+" "+t.S] = true
			}
		}
	}
	known := slices.Clone(p.names["signal"])
	for _, n := range again {
		for _, k := range known {
			p.names["signal"] = append(p.names["signal"], name{flow.Text{S: strings.ReplaceAll(n.S, flow.Known, k.S), Pos: n.Pos}, n.fact})
		}
	}
	return p
}

// inside reports whether a text is written in the program. A field of the library also has the
// values that other programs give it.
func (p *program) inside(pos token.Pos) bool {
	i, _ := slices.BinarySearchFunc(p.units, pos, func(u *flow.Unit, pos token.Pos) int { return int(u.Node.End() - pos) })
	return !pos.IsValid() || i < len(p.units) && p.units[i].Node.Pos() <= pos
}

// Programs checks each program of the world, and returns the findings in the order of places.
// What is right in one program is right.
func Programs(w *flow.World) []Finding {
	terms := map[string]*term{}
	var all []Finding
	for _, root := range w.Roots() {
		p := newProgram(w, root)
		p.terms(terms)
		all = slices.Concat(all, p.listed(), p.kinds(), p.gates())
	}
	for _, t := range terms {
		if t.alive == 0 {
			all = append(all, t.finding(w)...)
		}
	}
	return Sorted(all)
}

// Sorted sorts findings by place, and removes repetitions.
func Sorted(all []Finding) []Finding {
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(all, func(a, b Finding) bool { return a.String() == b.String() })
}

// found returns a finding at a text of a fact; none if a comment at the text or at the fact says so.
func found(w *flow.World, f flow.Fact, t flow.Text, check string, sure bool, message string) []Finding {
	if w.Ignored(f.Pos) || w.Ignored(t.Pos) {
		return nil
	}
	pos := cmp.Or(t.Pos, f.Pos)
	p := w.At(pos)
	return []Finding{{File: p.Filename, Line: p.Line, Column: p.Column, Check: check, Message: message, Sure: sure, Pos: pos}}
}

// place is the file and the line of a position, for people.
func place(w *flow.World, pos token.Pos) string {
	p := w.At(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// about is a message about what gets the text, with its place if the text is written elsewhere.
// If a helper puts the text together, the message has the argument of the helper.
func about(w *flow.World, f flow.Fact, t flow.Text, format string, args ...any) string {
	what, message := f.API, fmt.Sprintf(format, args...)
	if f.On != "" {
		what += " of " + f.On
	}
	in := func(pos token.Pos) bool { return !pos.IsValid() || f.Pos <= pos && pos < f.End }
	if !in(t.Pos) {
		what += " at " + place(w, f.Pos)
	}
	if !in(t.Via) && place(w, t.Via) != place(w, t.Pos) {
		message += " with the argument at " + place(w, t.Via)
	}
	return what + ": " + message
}

// listed lists the signals whose names are data.
func (p *program) listed() (all []Finding) {
	for _, f := range p.data["signal"] {
		all = append(all, found(p.w, f, flow.Text{}, "data", false, "the name of this signal is data; declare it: //ephemeral:raises NAME, or a pattern")...)
	}
	return all
}
