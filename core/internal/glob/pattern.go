// Package glob matches names with patterns: the language of signals.Match.
package glob

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// Match is Match of a pattern that is not compiled. It allocates nothing.
func Match(pattern, name string) bool {
	for at := 0; ; {
		matches, end := matchTerm(pattern, at, name)
		if end < 0 {
			end = termEnd(pattern, at)
			term := strings.TrimSpace(pattern[at:end])
			matches = term != "" && Walk(term, name)
		}
		if matches || end == len(pattern) {
			return matches
		}
		if at = end + 1; at < len(pattern) && pattern[at] == ' ' {
			at++
		}
	}
}

// matchTerm matches the term of a list that begins at at and ends at end; a negative end says
// that trim and walk are needed. It searches the whole literal after a star, and takes its first
// place: that leaves most for the rest of the term. Literals and names are short, so loops over
// their bytes cost less than calls.
func matchTerm(list string, at int, name string) (matches bool, end int) {
	if at == len(list) || !isGraph(list[at]) {
		return false, -1
	}
	i, n := at, 0
	for ; i+8 <= len(list) && n+8 <= len(name); i, n = i+8, n+8 {
		word := binary.LittleEndian.Uint64([]byte(list[i : i+8]))
		if word != binary.LittleEndian.Uint64([]byte(name[n:n+8])) || specials(word) != 0 {
			break
		}
	}
	if last := len(list) - 8; at <= last && last < i { // at most one more word: it overlaps the one before
		word := binary.LittleEndian.Uint64([]byte(list[last:]))
		if specials(word) == 0 && isGraph(list[len(list)-1]) {
			exact := len(name) == len(list)-at && binary.LittleEndian.Uint64([]byte(name[last-at:])) == word
			return exact, len(list)
		}
	}
	for ; i < len(list) && !isSpecial[list[i]]; i, n = i+1, n+1 {
		if n == len(name) || name[n] != list[i] {
			if !isGraph(list[i]) {
				return false, -1
			}
			return false, termEnd(list, i)
		}
	}
	switch {
	case i == len(list) || list[i] == ',':
		if i == at || !isGraph(list[i-1]) {
			return false, -1
		}
		return n == len(name), i
	case list[i] == '?':
		return false, -1
	}
	for name = name[n:]; ; {
		if at = i + 1; at == len(list) {
			return true, at
		}
		if !utf8.RuneStart(list[at]) { // a star takes whole characters
			return false, -1
		}
		for i = at; i < len(list) && !isSpecial[list[i]]; i++ {
		}
		literal := list[at:i]
		if i == len(list) || list[i] == ',' {
			if i > at && !isGraph(list[i-1]) {
				return false, -1
			}
			before := len(name) - len(literal)
			return before >= 0 && indexShort(name[before:], literal) == 0, i
		}
		if list[i] == '?' {
			return false, -1
		}
		before := indexShort(name, literal)
		if before < 0 {
			return false, termEnd(list, i)
		}
		name = name[before+len(literal):]
	}
}

// indexShort is [strings.Index]. It is faster in a short s.
func indexShort(s, part string) int {
	if len(s) > 64 {
		return strings.Index(s, part)
	}
search:
	for at := 0; at+len(part) <= len(s); at++ {
		for i := range len(part) {
			if s[at+i] != part[i] {
				continue search
			}
		}
		return at
	}
	return -1
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

// isSpecial says which bytes are not part of a literal.
var isSpecial = [256]bool{'*': true, '?': true, ',': true}

// specials marks the bytes of a word that are "*", "?" or ",", by the test for a zero byte of
// "Bit Twiddling Hacks" (https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord). The
// test may also mark a byte above a zero byte, but the lowest mark is right.
func specials(word uint64) uint64 {
	const ones = 0x0101010101010101
	star, query, comma := word^'*'*ones, word^'?'*ones, word^','*ones
	return ((star-ones)&^star | (query-ones)&^query | (comma-ones)&^comma) & (0x80 * ones)
}

// special returns the index of the first "*", "?" or "," in s, or its length. It looks at eight
// bytes at a time. The last word overlaps the previous one, which had no match.
func special(s string) int {
	if last := len(s) - 8; last >= 0 {
		for i := 0; ; i = min(i+8, last) {
			if marks := specials(binary.LittleEndian.Uint64([]byte(s[i : i+8]))); marks != 0 {
				return i + bits.TrailingZeros64(marks)/8
			}
			if i == last {
				return len(s)
			}
		}
	}
	for i := range len(s) {
		if isSpecial[s[i]] {
			return i
		}
	}
	return len(s)
}

// Walk matches a single alternative of any kind, character by character. On a mismatch it goes back to the
// newest star, which then takes one more character; older stars need no second look. It checks for a star
// before a literal, because a name may contain stars.
func Walk(term, name string) bool {
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

// Pattern is a pattern split once, to match many names against it.
type Pattern struct {
	Text  string
	Terms []Term
}

// Term is a single alternative. It is split at its stars, unless it has to be walked.
type Term struct {
	Text   string
	Prefix string   // the text before the first wildcard; all of text if there is none
	middle []string // the texts between stars, without empty ones
	suffix string   // the text after the last star
	walked bool     // a star takes whole characters, and a part does not begin with one; or there is a "?"
}

func Compile(text string) Pattern {
	p := Pattern{Text: text}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			p.Terms = append(p.Terms, split(part))
		}
	}
	return p
}

func split(text string) Term {
	t := Term{Text: text, walked: strings.Contains(text, "?")}
	t.Prefix = text[:special(text)]
	if t.walked || t.Exact() {
		return t
	}
	parts := strings.Split(text[len(t.Prefix)+1:], "*")
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

func (t *Term) Exact() bool { return len(t.Prefix) == len(t.Text) }

// matches takes the first place of each part: that leaves most for the rest of the term.
func (t *Term) matches(name string) bool {
	switch {
	case !strings.HasPrefix(name, t.Prefix):
		return false
	case t.Exact():
		return len(name) == len(t.Prefix)
	case t.walked:
		return Walk(t.Text, name)
	}
	rest, fits := strings.CutSuffix(name[len(t.Prefix):], t.suffix)
	for i := 0; fits && i < len(t.middle); i++ {
		_, rest, fits = strings.Cut(rest, t.middle[i])
	}
	return fits
}

func (p Pattern) Matches(name string) bool {
	for i := range p.Terms {
		if p.Terms[i].matches(name) {
			return true
		}
	}
	return false
}

// Exact returns the only name p can match, if there is just one.
func (p Pattern) Exact() (name string, ok bool) {
	if len(p.Terms) == 1 && p.Terms[0].Exact() {
		return p.Terms[0].Text, true
	}
	return "", false
}

// IsPlain reports whether text, used as a pattern, matches only itself.
func IsPlain(text string) bool {
	return text != "" && strings.TrimSpace(text) == text && special(text) == len(text)
}
