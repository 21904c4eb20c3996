package check

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// kinds finds names with two types of payload, and signals without a payload for which only
// code listens that wants one.
func (p *program) kinds() (all []Finding) {
	first := map[string]name{}
	sorted := slices.Clone(p.facts) // the kind of a package comes before others of its name
	slices.SortStableFunc(sorted, func(a, b flow.Fact) int { return cmp.Compare(rank(a), rank(b)) })
	for _, f := range sorted {
		for _, t := range f.Texts {
			if f.Verb != "kind" || !t.Exact() || t.Loose {
				continue
			}
			if other, ok := first[t.S]; !ok {
				first[t.S] = name{t, f}
			} else if other.fact.Payload != f.Payload {
				all = p.report(all, "kind", f, t, "%q has the payload %s here, and %s at %s", t.S, f.Payload, other.fact.Payload, place(p.w, other.Pos))
			}
		}
	}
	for _, f := range p.facts {
		for _, t := range f.Texts {
			if f.Verb != "raises" || f.Typed || !slices.Contains([]string{"Raise", "RaiseKey", "Hold"}, f.API) || !t.Exact() || t.Loose {
				continue
			}
			if by := p.listeners(t.S); by != nil {
				all = p.report(all, "plain", f, t, "%q is raised without a payload, but %s at %s wants one: raise it with its kind", t.S, by.API, place(p.w, by.Pos))
			}
		}
	}
	return all
}

// report adds a fault at a text, unless a comment at the text or at the call says no.
func (p *program) report(all []Finding, check string, f flow.Fact, t flow.Text, format string, args ...any) []Finding {
	if p.w.Ignored(f.Pos) || p.w.Ignored(t.Pos) {
		return all
	}
	return append(all, at(p.w, cmp.Or(t.Pos, f.Pos), check, true, "%s", about(p.w, f, t, fmt.Sprintf(format, args...))))
}

func rank(f flow.Fact) int {
	if f.Global {
		return 0
	}
	return 1
}

// listeners returns a subscriber of a kind with that name, if no code reads the name as such.
func (p *program) listeners(name string) (by *flow.Fact) {
	for i, f := range p.facts {
		if f.Verb != "pattern" {
			continue
		}
		for _, t := range f.Texts {
			if f.Typed && f.API == "Subscribe" && t.S == name {
				by = &p.facts[i]
			} else if !f.Typed && matchesList(t.S, name) {
				return nil
			}
		}
	}
	return by
}

func matchesList(pattern, name string) bool {
	for part := range strings.SplitSeq(pattern, ",") {
		if flow.Match(strings.TrimSpace(part), name, false) {
			return true
		}
	}
	return false
}

// gates finds coordinators that nothing can close, although the signal is raised: they have a
// sink of their own, no code asks for it, and no operation raises the signal.
func (p *program) gates() (all []Finding) {
	var alone []flow.Fact
	asked := map[token.Pos]bool{} // calls that make coordinators whose sink is used; NoPos: any
	for _, f := range p.facts {
		switch f.Verb {
		case "sink":
			asked[f.Maker] = true
		case "alone":
			alone = append(alone, f)
		}
	}
	library := p.w.Linked(p.root.Pkg.Deps)
	for _, f := range alone {
		closes := asked[f.Maker] || asked[token.NoPos]
		for _, r := range append(library, p.facts...) {
			for _, n := range r.Texts {
				for _, t := range f.Texts {
					closes = closes || t.Open() || r.Verb == "raises" && r.InBody && (n.Open() || strings.Contains(n.S, flow.Known) || matchesList(t.S, n.S))
				}
			}
		}
		raised := slices.ContainsFunc(p.names["signal"], func(n name) bool {
			return slices.ContainsFunc(f.Texts, func(t flow.Text) bool { return matchesList(t.S, n.S) })
		})
		if raised && !closes { // if nothing raises it at all, another finding says so
			all = p.report(all, "gate", f, f.Texts[0], "nothing can close %q: Options.Sink is nil, no code calls Sink, and no operation raises it", f.Texts[0])
		}
	}
	return all
}
