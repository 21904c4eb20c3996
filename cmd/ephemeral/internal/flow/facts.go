package flow

import (
	"go/token"
	"go/types"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
)

// Fact is one thing that a program does with names. The verbs are those of the directives:
// "raises", "pattern", "lane", "class", "defines lane" and "defines class". Other verbs are
// "kind", for a name with a payload; "alone", for the gates of a coordinator whose sink nobody
// else has been given; and "sink", for code that asks a coordinator for its sink. What is wrong in
// any program is a "view" or a "release" that is dropped, and "waits", for a body that waits for
// its own coordinator.
type Fact struct {
	Unit     *Unit // nil for what the library does by itself
	Verb     string
	Texts    []Text
	Prefixes []Text // what may stand before the texts; one is empty
	Names    []Text // of lanes or classes, if those of the coordinator are Known
	Known    bool
	Pos, End token.Pos
	API      string    // like "CancelOn" or "Raise"
	On       string    // the coordinator, for people
	Helper   token.Pos // where the API is called, if Pos is a call of a helper
	Dir      string    // of the API in the library; "" for a directive of the program
	Typed    bool      // by a kind or a family
	Global   bool      // outside of functions
	Payload  string    // type of the payload of a kind
	InBody   bool      // an operation may have raised it
	Maker    token.Pos // of "alone" and "sink": the call that makes the coordinator, if it is known
}

// facts writes down the facts of a call.
func (w *World) facts(c *call) {
	api := Fact{Pos: c.expr.Pos(), End: c.expr.End(), Global: c.fn == nil, Prefixes: []Text{{}}, API: "a comparison with the name of a signal"}
	all := roles.Of("core/signals Match")
	if c.callee != nil {
		api.API, all = c.callee.Name(), w.rolesOf(c.callee)
		api.Dir, _ = w.key(c.callee)
	}
	if c.CallExpr == nil {
		api.On = w.name(c.on, w.holder[c.on.Expr])
	}
	if r := w.roleOf(c.callee, "prefix"); r != nil {
		api.Prefixes = append(api.Prefixes, w.instance(*r, c, nil, api.Pos)...)
	}
	for _, r := range all {
		f := api
		f.Verb = r.Verb
		switch r.Verb {
		case "match":
			name := w.instance(roles.Role{Parts: r.Parts[2:]}, c, nil, api.Pos)
			if slices.ContainsFunc(name, func(t Text) bool { return t.S != Known }) || len(name) == 0 {
				continue
			}
			f.Verb, r.Parts = "pattern", r.Parts[:1]
		case "is":
			f.Verb = "kind"
		case "raises", "pattern", "lane", "class", "defines lane", "defines class":
		default:
			continue
		}
		f.Typed, f.InBody = c.operand("Kind", "Family").Expr != nil, c.operand("Sink").Expr == nil
		for _, frame := range w.frames(c.fn, 2) {
			texts := w.instance(r, c, frame, api.Pos)
			if on := c.operand("Raiser"); on.Expr != nil && f.Verb == "raises" {
				texts = join(w.views(on, frame), texts)
			} else if f.Verb == "kind" {
				w.kind(f, c, frame, texts)
			}
			f.Texts = append(f.Texts, texts...)
		}
		f.Texts = unite(f.Texts)
		if (r.Verb == "lane" || r.Verb == "class") && c.CallExpr != nil {
			f.Names, f.Known, f.On = w.places(c, r.Verb)
		}
		if f.Verb != "kind" {
			c.unit.add(f)
		}
	}
	if c.CallExpr != nil {
		w.shapes(c, api)
		w.waits(c, api)
	}
}

// kind writes down the names of a kind with its payload. A helper that makes kinds may be generic.
func (w *World) kind(f Fact, c *call, up *frame, names []Text) {
	for ; up != nil && payload(c) == ""; up = up.up {
		c = up.call
	}
	if f.Payload = payload(c); f.Payload != "" {
		f.Texts, f.Global = names, c.fn == nil
		c.unit.add(f)
	}
}

// frames returns the calls of the function around a use, up to some depth. They keep the
// arguments of one call together.
func (w *World) frames(fn any, depth int) []*frame {
	calls := w.calls[fn]
	if depth == 0 || len(calls) == 0 || len(calls) > most || w.escapes[fn] {
		return []*frame{nil}
	}
	var all []*frame
	for _, c := range calls {
		for _, up := range w.frames(c.fn, depth-1) {
			all = append(all, &frame{fn: fn, call: c, up: up})
		}
	}
	if len(all) > most {
		return []*frame{nil}
	}
	return all
}

// operand returns the receiver or the argument that has one of these types of core.
func (c *call) operand(names ...string) (none expr) {
	for _, x := range append([]expr{c.on}, c.args...) {
		if slices.Contains(names, coreType(typeOf(x))) {
			return x
		}
	}
	return none
}

// isView reports whether a function returns a view of its receiver.
func (w *World) isView(fn types.Object) bool { return w.roleOf(fn, "view") != nil }

// typeOf is the type of an expression, also of none.
func typeOf(x expr) types.Type {
	if x.Expr != nil {
		if t := x.info.TypeOf(x.Expr); t != nil {
			return t
		}
	}
	return types.Typ[types.Invalid]
}

// views returns the prefixes of a raiser. One of which nothing is known has none.
func (w *World) views(on expr, f *frame) (all []Text) {
	for _, t := range w.texts(on, f) {
		if t.Open() {
			t.S = ""
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return []Text{{}}
	}
	return unite(all)
}

// coreType returns the name of a type of core or core/signals, for T and *T.
func coreType(t types.Type) string {
	if n := named(t); n != nil && n.Obj().Pkg() != nil && slices.Contains([]string{roles.Prefix + "core", roles.Prefix + "core/signals"}, n.Obj().Pkg().Path()) {
		return n.Obj().Name()
	}
	return ""
}

// Linked returns what packages of the library raise by themselves.
func (w *World) Linked(paths map[string]bool) (all []Fact) {
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		f := Fact{Verb: "raises", Dir: roles.Dir(path), API: roles.Dir(path), InBody: true}
		for _, r := range roles.Linked(f.Dir) {
			f.Texts = append(f.Texts, w.instance(r, nil, nil, token.NoPos)...)
		}
		all = append(all, f)
	}
	return all
}

// LinkedKinds returns the kinds and families that packages of the library have as variables, if packages of
// the user import them.
func (w *World) LinkedKinds(paths map[string]bool) (all []Fact) {
	for _, p := range w.Packages {
		if !paths[p.PkgPath] {
			continue
		}
		for _, lib := range p.Types.Imports() {
			dir := roles.Dir(lib.Path())
			if dir == "" {
				continue
			}
			for _, name := range lib.Scope().Names() {
				v, ok := lib.Scope().Lookup(name).(*types.Var)
				if !ok {
					continue
				}
				payload := payloadOf(v.Type(), "Kind", "Family")
				if payload == "" {
					continue
				}
				for _, r := range roles.Of(dir + " " + name) {
					if r.Verb == "is" {
						all = append(all, Fact{Verb: "kind", Dir: dir, API: dir, Global: true, Payload: payload, Texts: w.instance(r, nil, nil, token.NoPos)})
					}
				}
			}
		}
	}
	return all
}

// Parts returns the names or patterns of a fact one by one, without blanks: texts may be comma
// lists, and a lane may be "hot:4".
func (f Fact) Parts() (all []Text) {
	for _, t := range f.Texts {
		for s := range strings.SplitSeq(t.S, ",") {
			if f.Verb != "raises" && f.Verb != "pattern" {
				s, _, _ = strings.Cut(s, ":")
			}
			t.S = strings.TrimSpace(s)
			all = append(all, t)
		}
	}
	return all
}

// Parts yields the parts of the facts with a verb.
func Parts(facts []Fact, verb string) iter.Seq2[Fact, Text] {
	return func(yield func(Fact, Text) bool) {
		for _, f := range facts {
			if f.Verb != verb {
				continue
			}
			for _, t := range f.Parts() {
				if !yield(f, t) {
					return
				}
			}
		}
	}
}
