package core

import (
	"strings"
	"unicode/utf8"
)

// Match reports whether name matches pattern. It is the one pattern language of
// the library, used wherever a signal pattern is accepted:
//
//   - "*" stands for any run of characters, dots and colons included, or none;
//   - "?" stands for exactly one character;
//   - anything else stands for itself, case-sensitively, so a pattern without
//     "*" and "?" is an exact name;
//   - commas separate alternatives: "error.*, timeout" matches either. Blanks
//     around an alternative are trimmed and empty alternatives are ignored, so
//     an empty pattern matches nothing.
//
// Matching allocates nothing and takes at worst len(pattern) x len(name) steps.
func Match(pattern, name string) bool {
	for more := true; more; {
		var term string
		term, pattern, more = strings.Cut(pattern, ",")
		if term = strings.TrimSpace(term); term != "" && matchTerm(term, name) {
			return true
		}
	}
	return false
}

// matchTerm matches a single alternative. On a mismatch it goes back to the
// newest star and lets that take one character more; older stars never need to
// be reconsidered. The star is looked for before the literal, because a name may
// contain stars of its own.
func matchTerm(term, name string) bool {
	t, n := 0, 0
	star, resume := -1, 0
	for n < len(name) {
		if t < len(term) && term[t] == '*' {
			star, resume = t, n
			t++
			continue
		}
		if t < len(term) {
			if term[t] == '?' {
				_, size := utf8.DecodeRuneInString(name[n:])
				t++
				n += size
				continue
			}
			if term[t] == name[n] {
				t++
				n++
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(name[resume:])
		resume += size
		t, n = star+1, resume
	}
	for t < len(term) && term[t] == '*' {
		t++
	}
	return t == len(term)
}

// pattern is a pattern split once, for those who match many names against it.
type pattern struct {
	text  string
	terms []term
}

type term struct {
	text  string
	plain bool // no wildcard: equality
	all   bool // "*"
}

func compile(text string) pattern {
	p := pattern{text: text}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			p.terms = append(p.terms, term{
				text:  part,
				plain: !strings.ContainsAny(part, "*?"),
				all:   part == "*",
			})
		}
	}
	return p
}

func (p pattern) matches(name string) bool {
	for i := range p.terms {
		t := &p.terms[i]
		switch {
		case t.all:
			return true
		case t.plain:
			if t.text == name {
				return true
			}
		case matchTerm(t.text, name):
			return true
		}
	}
	return false
}

// exact returns the only name p can match, if there is just one.
func (p pattern) exact() (name string, ok bool) {
	if len(p.terms) == 1 && p.terms[0].plain {
		return p.terms[0].text, true
	}
	return "", false
}

// isPlain reports whether text, used as a pattern, matches only itself.
func isPlain(text string) bool {
	if text == "" || text[0] == ' ' || text[len(text)-1] == ' ' {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c == '*', c == '?', c == ',':
			return false
		case c < ' ', c >= utf8.RuneSelf: // may be a blank to trim: let the pattern decide
			return strings.TrimSpace(text) == text && !strings.ContainsAny(text, "*?,")
		}
	}
	return true
}
