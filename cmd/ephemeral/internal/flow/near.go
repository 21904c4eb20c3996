package flow

import "strings"

// Match reports whether a name may match a part of a pattern without commas. Both may have
// holes. If it is strict, a hole of the name stands only for what a wildcard matches.
func Match(pattern, name string, strict bool) bool {
	if !strings.ContainsAny(pattern, "*?"+Hole+Known) && !strings.ContainsAny(name, "*?"+Hole+Known) {
		return pattern == name
	}
	if differ(pattern, name) {
		return false
	}
	if tooLong(pattern, name) {
		return !strict
	}
	changes, _ := Corrected(pattern, name, 0, strict)
	return changes == 0
}

// maxWork bounds the product of two lengths that Corrected compares. No name is as long as that takes.
const maxWork = 1 << 18

// tooLong reports whether a comparison takes too long. Then Match knows only that the texts do not
// differ, and Corrected finds nothing.
func tooLong(pattern, name string) bool { return len(pattern) > maxWork/max(1, len(name)) }

// differ reports whether the texts differ before the first wildcard or hole, or after the last.
func differ(pattern, name string) bool {
	const open = "*?" + Hole + Known
	p, n := strings.IndexAny(pattern, open), strings.IndexAny(name, Hole+Known)
	head := min(uint(p), uint(n), uint(len(pattern)), uint(len(name))) // -1 is very large
	p, n = len(pattern)-1-strings.LastIndexAny(pattern, open), len(name)-1-strings.LastIndexAny(name, Hole+Known)
	tail := min(p, n)
	return pattern[:head] != name[:head] || pattern[len(pattern)-tail:] != name[len(name)-tail:]
}

func wild(r rune) bool { return r == '*' || r == 0 || r == 1 }

// cell is the best way to change the beginning of a pattern so that it matches the beginning of
// a name.
type cell struct {
	cost int
	text string // the changed beginning
}

// Corrected returns the pattern with the fewest changes with which it matches the name, and
// how many changes these are: characters that are replaced, inserted, deleted or swapped. If
// more than limit are needed, or the texts are too long, the number is larger. If limit is 0, there
// is no text.
func Corrected(pattern, name string, limit int, strict bool) (int, string) {
	if tooLong(pattern, name) {
		return limit + 1, ""
	}
	p, n := []rune(pattern), []rune(name)
	hole := func(r rune) bool { return !strict && (r == 0 || r == 1) }
	best := make([][]cell, len(p)+1) // best[i][j] is for the first i characters of the pattern and the first j of the name
	for i := range best {
		best[i] = make([]cell, len(n)+1)
		low := 1 << 20
		for j := range best[i] {
			at := &best[i][j]
			if i > 0 || j > 0 {
				at.cost = 1 << 20
			}
			try := func(di, dj int, free bool, kept, changed []rune) {
				from, add := best[i-di][j-dj], kept
				if !free {
					from.cost, add = from.cost+1, changed
				}
				if from.cost >= at.cost {
					return
				}
				if *at = from; limit > 0 {
					at.text += string(add)
				}
			}
			if i > 0 && j > 0 {
				a, b := p[i-1], n[j-1]
				try(1, 1, a == b || a == '?' || wild(a) || hole(b), p[i-1:i], n[j-1:j])
				if i > 1 && j > 1 && a == n[j-2] && p[i-2] == b {
					try(2, 2, false, nil, n[j-2:j])
				}
			}
			if j > 0 { // the name has one character more
				try(0, 1, i > 0 && wild(p[i-1]) || hole(n[j-1]), nil, n[j-1:j])
			}
			if i > 0 { // the pattern has one character more
				try(1, 0, j > 0 && hole(n[j-1]) || wild(p[i-1]), p[i-1:i], nil)
			}
			low = min(low, at.cost)
		}
		if low > limit {
			return limit + 1, ""
		}
	}
	last := best[len(p)][len(n)]
	return last.cost, last.text
}
