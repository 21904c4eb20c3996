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

// matchTerm matches a single alternative. It looks for the literal after a star as a whole,
// and only for its first place, which leaves most to what follows.
func matchTerm(term, name string) bool {
	star := strings.IndexByte(term, '*')
	switch {
	case strings.IndexByte(term, '?') >= 0:
		return walk(term, name)
	case star < 0:
		return term == name
	case !strings.HasPrefix(name, term[:star]):
		return false
	}
	left, rest := name[star:], term[star+1:]
	for {
		if rest != "" && !utf8.RuneStart(rest[0]) { // a star takes whole characters
			return walk(term, name)
		}
		star = strings.IndexByte(rest, '*')
		if star < 0 {
			return strings.HasSuffix(left, rest)
		}
		at := strings.Index(left, rest[:star])
		if at < 0 {
			return false
		}
		left, rest = left[at+star:], rest[star+1:]
	}
}

// walk matches a single alternative of any kind, character by character. On a
// mismatch it goes back to the newest star and lets that take one character more;
// older stars never need to be reconsidered. The star is looked for before the literal, because a name may
// contain stars of its own.
func walk(term, name string) bool {
	t, n := 0, 0
	star, resume := -1, 0
	for n < len(name) {
		switch {
		case t < len(term) && term[t] == '*':
			star, resume = t, n
			t++
		case t < len(term) && term[t] == '?':
			_, size := utf8.DecodeRuneInString(name[n:])
			t++
			n += size
		case t < len(term) && term[t] == name[n]:
			t++
			n++
		case star < 0:
			return false
		default:
			_, size := utf8.DecodeRuneInString(name[resume:])
			resume += size
			t, n = star+1, resume
		}
	}
	return strings.Trim(term[t:], "*") == ""
}

// pattern is a pattern split once, to match many names against it.
type pattern struct {
	text  string
	terms []term
}

// term is a single alternative.
type term struct {
	text   string
	prefix string // what is before the first wildcard; all of text if there is none
}

func compile(text string) pattern {
	p := pattern{text: text}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			prefix, _, _ := strings.Cut(part, "*")
			prefix, _, _ = strings.Cut(prefix, "?")
			p.terms = append(p.terms, term{part, prefix})
		}
	}
	return p
}

func (t *term) exact() bool { return len(t.prefix) == len(t.text) }

func (p pattern) matches(name string) bool {
	for i := range p.terms {
		t := &p.terms[i]
		if strings.HasPrefix(name, t.prefix) && (t.text == name || !t.exact() && matchTerm(t.text, name)) {
			return true
		}
	}
	return false
}

// exact returns the only name p can match, if there is just one.
func (p pattern) exact() (name string, ok bool) {
	if len(p.terms) == 1 && p.terms[0].exact() {
		return p.terms[0].text, true
	}
	return "", false
}

// isPlain reports whether text, used as a pattern, matches only itself.
func isPlain(text string) bool {
	return text != "" && strings.TrimSpace(text) == text && strings.IndexByte(text, ',') < 0 &&
		strings.IndexByte(text, '*') < 0 && strings.IndexByte(text, '?') < 0
}
