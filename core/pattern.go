package core

import (
	"encoding/binary"
	"math/bits"
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
//
//ephemeral:match {pattern} {name}
func Match(pattern, name string) bool {
	for {
		matches, end := matchFirst(pattern, name)
		if end < 0 {
			end = termEnd(pattern, 0)
			term := strings.TrimSpace(pattern[:end])
			matches = term != "" && walk(term, name)
		}
		if matches || end == len(pattern) {
			return matches
		}
		pattern = pattern[end+1:]
	}
}

// matchFirst matches the first term of a list, which ends at end; a negative end says
// that trim and walk are needed. It searches the whole literal after a star, and
// takes its first place: that leaves most for the rest of the term.
func matchFirst(list, name string) (matches bool, end int) {
	if list == "" || !isGraph(list[0]) {
		return false, -1
	}
	i := 0
	if list[0] != '*' {
		i = special(list)
	}
	switch {
	case i == len(list) || list[i] == ',':
		if i == 0 || !isGraph(list[i-1]) {
			return false, -1
		}
		return list[:i] == name, i
	case list[i] == '?':
		return false, -1
	case !strings.HasPrefix(name, list[:i]):
		return false, termEnd(list, i)
	}
	for rest := list; ; {
		name, rest = name[i:], rest[i+1:]
		if rest == "" {
			return true, len(list)
		}
		if !utf8.RuneStart(rest[0]) { // a star takes whole characters
			return false, -1
		}
		i = special(rest)
		if i == len(rest) || rest[i] == ',' {
			if i > 0 && !isGraph(rest[i-1]) {
				return false, -1
			}
			return strings.HasSuffix(name, rest[:i]), len(list) - len(rest) + i
		}
		if rest[i] == '?' {
			return false, -1
		}
		at := strings.Index(name, rest[:i])
		if at < 0 {
			return false, termEnd(list, len(list)-len(rest))
		}
		name = name[at:]
	}
}

// termEnd returns the end of a term that does not end before from.
func termEnd(list string, from int) int {
	if i := strings.IndexByte(list[from:], ','); i >= 0 {
		return from + i
	}
	return len(list)
}

// isGraph reports whether c is neither a blank nor a byte of one.
func isGraph(c byte) bool { return c > ' ' && c < utf8.RuneSelf }

// special returns the index of the first "*", "?" or "," in s, or its length. It
// looks at eight bytes at a time, by the test for a zero byte of "Bit Twiddling
// Hacks" (https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord). The
// test may also mark a byte above a zero byte, but the lowest mark is right. The
// last word overlaps the previous one, which had no match.
func special(s string) int {
	const ones = 0x0101010101010101
	if last := len(s) - 8; last >= 0 {
		for i := 0; ; i = min(i+8, last) {
			word := binary.LittleEndian.Uint64([]byte(s[i : i+8]))
			star, query, comma := word^'*'*ones, word^'?'*ones, word^','*ones
			hits := ((star-ones)&^star | (query-ones)&^query | (comma-ones)&^comma) & (0x80 * ones)
			if hits != 0 {
				return i + bits.TrailingZeros64(hits)/8
			}
			if i == last {
				return len(s)
			}
		}
	}
	for i := range len(s) {
		if c := s[i]; c == '*' || c == '?' || c == ',' {
			return i
		}
	}
	return len(s)
}

// walk matches a single alternative of any kind, character by character. On a mismatch it goes back to the
// newest star, which then takes one more character; older stars need no second look. It checks for a star
// before a literal, because a name may contain stars.
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

// term is a single alternative. It is split at its stars, unless it has to be walked.
type term struct {
	text   string
	prefix string   // the text before the first wildcard; all of text if there is none
	middle []string // the texts between stars, without empty ones
	suffix string   // the text after the last star
	walked bool     // a star takes whole characters, and a part does not begin with one; or there is a "?"
}

func compile(text string) pattern {
	p := pattern{text: text}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			p.terms = append(p.terms, split(part))
		}
	}
	return p
}

func split(text string) term {
	t := term{text: text, walked: strings.Contains(text, "?")}
	t.prefix = text[:special(text)]
	if t.walked || t.exact() {
		return t
	}
	parts := strings.Split(text[len(t.prefix)+1:], "*")
	for i, part := range parts {
		switch {
		case part != "" && !utf8.RuneStart(part[0]):
			t.walked = true
		case i == len(parts)-1:
			t.suffix = part
		case part != "":
			t.middle = append(t.middle, part)
		}
	}
	return t
}

func (t *term) exact() bool { return len(t.prefix) == len(t.text) }

// matches takes the first place of each part: that leaves most for the rest of the term.
func (t *term) matches(name string) bool {
	switch {
	case !strings.HasPrefix(name, t.prefix):
		return false
	case t.exact():
		return len(name) == len(t.prefix)
	case t.walked:
		return walk(t.text, name)
	}
	rest, fits := strings.CutSuffix(name[len(t.prefix):], t.suffix)
	for i := 0; fits && i < len(t.middle); i++ {
		_, rest, fits = strings.Cut(rest, t.middle[i])
	}
	return fits
}

func (p pattern) matches(name string) bool {
	for i := range p.terms {
		if p.terms[i].matches(name) {
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
	return text != "" && strings.TrimSpace(text) == text && special(text) == len(text)
}

// byPattern is the Pattern of a Retraction.
func byPattern(p pattern) string {
	if _, exact := p.exact(); exact {
		return ""
	}
	return p.text
}
