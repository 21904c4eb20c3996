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
	for more := true; more; pattern = strings.TrimLeft(pattern, " ") {
		same, all := 0, pattern
		for same < len(all) && same < len(name) && all[same] == name[same] && isLetter(name[same]) {
			same++
		}
		rest, whole := all[same:], same > 0 && same == len(name)
		if rest == "*" || rest == "" && whole {
			return true
		}
		rest, pattern, more = strings.Cut(rest, ",")
		switch {
		case rest == "" && whole, strings.HasPrefix(rest, "*") && matchStars(rest, name[same:]):
			return true
		case rest != "" && rest[0] != '*' && !isLetter(rest[0]):
			if term := strings.TrimSpace(all[:same+len(rest)]); term != "" && walk(term, name) {
				return true
			}
		}
	}
	return false
}

// isLetter reports whether c stands for itself in a pattern, and is not a blank or part of one.
func isLetter(c byte) bool { return c > ',' && c != '?' && c < utf8.RuneSelf }

// matchStars matches a single alternative that begins with a star. It looks for the literal
// after a star as a whole, and only for its first place, which leaves most to what follows.
// A "?" in a literal that is found stands for itself.
func matchStars(term, name string) bool {
	if last := term[len(term)-1]; last != '*' && !isLetter(last) {
		term = strings.TrimSpace(term)
	}
	for left, rest := name, term[1:]; ; {
		if rest != "" && !utf8.RuneStart(rest[0]) { // a star takes whole characters
			return walk(term, name)
		}
		star := strings.IndexByte(rest, '*')
		if star < 0 && strings.HasSuffix(left, rest) {
			return true
		}
		at := -1
		if star >= 0 {
			at = strings.Index(left, rest[:star])
		}
		if at < 0 {
			return strings.IndexByte(term, '?') >= 0 && walk(term, name)
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
		if strings.HasPrefix(name, t.prefix) && (t.text == name || !t.exact() && Match(t.text, name)) {
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
