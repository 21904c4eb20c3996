package check

import (
	"go/token"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// kinds finds names with two types of payload, and signals without a payload for which only
// code listens that wants one.
func (p *program) kinds() (all []Finding) {
	first := map[string]name{}
	var families []name
	for f, t := range flow.Parts(p.w.LinkedKinds(p.root.Pkg.Deps), "kind") {
		if first[t.S] = (name{t, f}); strings.ContainsAny(t.S, "*?") { // the library has one payload for a name
			families = append(families, name{t, f})
		}
	}
	for _, global := range []bool{true, false} { // the kind of a package comes before others of its name
		for f, t := range flow.Parts(p.facts, "kind") {
			if f.Global != global || !t.Exact() || t.Loose {
				continue
			}
			other, ok := first[t.S]
			if i := slices.IndexFunc(families, func(n name) bool { return flow.Match(n.S, t.S, false) }); !ok && i >= 0 {
				other, ok = families[i], true
			}
			if !ok {
				first[t.S] = name{t, f}
			} else if other.fact.Payload != f.Payload {
				at := "at " + place(p.w, other.Pos)
				if other.fact.Unit == nil { // of the library
					at = "in " + other.fact.Dir
				}
				message := about(p.w, f, t, "%q has the payload %s here, and %s %s", t.S, f.Payload, other.fact.Payload, at)
				all = append(all, found(p.w, f, t, "kind", true, message)...)
			}
		}
	}
	wants := map[string]flow.Fact{}
	for f, t := range flow.Parts(p.facts, "pattern") {
		if f.Typed && f.API == "Subscribe" {
			wants[t.S] = f
		}
	}
	for f, t := range flow.Parts(p.facts, "raises") {
		by, wanted := wants[t.S]
		if !f.Typed && slices.Contains([]string{"Raise", "RaiseKey", "Hold"}, f.API) && wanted && !t.Loose && !p.reads(t.S) {
			message := about(p.w, f, t, "%q is raised without a payload, but %s at %s wants one: raise it with its kind", t.S, by.API, place(p.w, by.Pos))
			all = append(all, found(p.w, f, t, "plain", true, message)...)
		}
	}
	return all
}

// reads reports whether code that wants no payload reads a name.
func (p *program) reads(name string) bool {
	return slices.ContainsFunc(p.facts, func(f flow.Fact) bool { return f.Verb == "pattern" && !f.Typed && matches(f, name) })
}

// matches reports whether one of the patterns of a fact matches a name.
func matches(f flow.Fact, name string) bool {
	return slices.ContainsFunc(f.Parts(), func(t flow.Text) bool { return flow.Match(t.S, name, false) })
}

// gates finds coordinators that nothing can close, although the signal is raised: they have a
// sink of their own, no code asks for it, and no operation raises the signal.
func (p *program) gates() (all []Finding) {
	asked := map[token.Pos]bool{} // calls that make coordinators whose sink is used; NoPos: any
	for f, t := range flow.Parts(p.facts, "raises") {
		if f.InBody && (t.Open() || strings.Contains(t.S, flow.Known)) {
			asked[token.NoPos] = true
		}
	}
	for _, f := range p.facts {
		if f.Verb == "sink" {
			asked[f.Maker] = true
		}
	}
	for _, f := range p.facts {
		if f.Verb != "alone" || asked[f.Maker] || asked[token.NoPos] || slices.ContainsFunc(f.Texts, flow.Text.Open) {
			continue
		}
		f.Verb = "pattern"
		raised, closes := false, false // if nothing raises it at all, another finding says so
		for _, n := range p.names["signal"] {
			if matches(f, n.S) {
				raised, closes = true, closes || n.fact.InBody
			}
		}
		if raised && !closes {
			message := about(p.w, f, f.Texts[0], "nothing can close %q: Options.Sink is nil, no code calls Sink, and no operation raises it", f.Texts[0])
			all = append(all, found(p.w, f, f.Texts[0], "gate", true, message)...)
		}
	}
	return all
}
