package check

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// term is a part of a pattern, or the name of a lane or a class, at one place of the source.
type term struct {
	flow.Text
	kind  string // of names
	fact  flow.Fact
	alive int  // programs in which it can be right
	data  bool // a program that has it takes names from data, or is an example
	near  near
}

// near is the name that was probably meant.
type near struct {
	name
	cost int
	text string // the term as it should be; "" if no name is near
}

// terms finds the terms that nothing can match.
func (p *program) terms(all map[string]*term) {
	for verb, kind := range kinds {
		for f, t := range flow.Parts(p.facts, verb) {
			if !p.inside(t.Pos) || strings.Trim(t.S, "*?"+flow.Hole+flow.Known) == "" {
				continue
			}
			f.Known = f.Known && !t.Loose // or the text may be for another coordinator
			key := fmt.Sprint(t.Pos, f.Pos, f.API, t.S)
			if all[key] == nil {
				all[key] = &term{Text: t, kind: kind, fact: f, near: near{cost: 1 << 20}}
			}
			all[key].try(p)
		}
	}
}

// try looks for the names of a program that the term can match. If only names can of which a
// part is data, swapped letters are still a fault.
func (t *term) try(p *program) {
	if p.exact[t.kind+" "+t.S] && !t.fact.Known {
		t.alive++
		return
	}
	weak := false
	names, data := p.names[t.kind], len(p.data[t.kind]) > 0
	if t.fact.Known {
		names, data = nil, false
		for _, n := range t.fact.Names {
			names = append(names, name{n, t.fact})
		}
	}
	for _, n := range names {
		if !t.matches(n.S, false) {
			continue
		} else if t.matches(n.S, true) {
			t.alive++
			return
		}
		weak = true
	}
	t.data = t.data || data || !p.root.Program()
	limit := max(1, min(3, len(t.S)/4))
	best := near{cost: limit + 1}
	for _, n := range names {
		for _, prefix := range t.fact.Prefixes {
			if cost, text := flow.Corrected(prefix.S+t.S, n.S, min(limit, best.cost-1), weak); cost > 0 && cost < best.cost {
				best = near{n, cost, strings.TrimPrefix(text, prefix.S)}
			}
		}
	}
	if weak && (best.cost > 1 || !sameLetters(t.S, best.text)) {
		t.alive++
		return
	}
	if best.cost < t.near.cost {
		t.near = best
	}
}

func (t *term) matches(name string, strict bool) bool {
	return slices.ContainsFunc(t.fact.Prefixes, func(p flow.Text) bool { return flow.Match(p.S+t.S, name, strict) })
}

// finding describes a term that nothing matches. It is sure unless a name comes from data, the
// text may be put together wrongly, or an example leaves out the rest of its program. Then a
// single wrong letter makes it sure.
func (t *term) finding(w *flow.World) []Finding {
	says := "nothing raises %q"
	if t.fact.Known {
		says = "its options have no " + t.kind + " %q"
	} else if t.kind != "signal" {
		says = "no options have a " + t.kind + " %q"
	}
	message := about(w, t.fact, t.Text, says, t.String())
	sure, nearest := !t.data && !t.Loose && t.Exact(), ""
	if t.near.text != "" {
		nearest = flow.Text{S: t.near.text}.String()
		sure = sure || t.near.cost == 1 && sameSigns(t.S, t.near.text) && (t.Exact() && len(t.S) > 2 || sameLetters(t.S, t.near.text))
		message += fmt.Sprintf("; did you mean %q", nearest)
		if t.near.Pos.IsValid() {
			message += " (" + place(w, t.near.Pos) + ")"
		} else if t.near.fact.Dir != "" {
			message += " (" + t.near.fact.Dir + ")"
		}
		message += "?"
	}
	all := found(w, t.fact, t.Text, "name", sure, message)
	for i := range all {
		all[i].Nearest = nearest
	}
	return all
}

// sameSigns reports whether two texts differ in letters alone: stage1 and stage2 are two names.
func sameSigns(a, b string) bool {
	signs := func(r rune) rune {
		if unicode.IsLetter(r) {
			return -1
		}
		return r
	}
	return strings.Map(signs, a) == strings.Map(signs, b)
}

// sameLetters reports whether two texts have the same letters, in any order.
func sameLetters(a, b string) bool {
	return slices.Equal(slices.Sorted(slices.Values([]rune(a))), slices.Sorted(slices.Values([]rune(b))))
}
