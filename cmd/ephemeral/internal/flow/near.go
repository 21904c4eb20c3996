package flow

import (
	"slices"
	"strings"
)

// Match reports whether a name may match a part of a pattern without commas. Both may have
// holes. If it is strict, a hole of the name stands only for what a wildcard matches.
func Match(pattern, name string, strict bool) bool {
	if !strings.ContainsAny(pattern, "*?"+Hole+Known) && !strings.ContainsAny(name, "*?"+Hole+Known) {
		return pattern == name
	}
	if differ(pattern, name) {
		return false
	}
	changes, _ := align([]rune(pattern), []rune(name), 0, strict)
	return changes == 0
}

// differ reports whether the texts differ before the first wildcard or hole, or after the last.
func differ(pattern, name string) bool {
	const open = "*?" + Hole + Known
	p, n := strings.IndexAny(pattern, open), strings.IndexAny(name, Hole+Known)
	head := min(uint(p), uint(n), uint(len(pattern)), uint(len(name))) // -1 is very large
	p, n = len(pattern)-1-strings.LastIndexAny(pattern, open), len(name)-1-strings.LastIndexAny(name, Hole+Known)
	tail := min(p, n)
	return pattern[:head] != name[:head] || pattern[len(pattern)-tail:] != name[len(name)-tail:]
}

// Corrected returns the pattern with the fewest changes with which it matches the name, and
// how many changes these are: characters that are replaced, inserted, deleted or swapped. If
// more than limit are needed, the number is larger.
func Corrected(pattern, name string, limit int, strict bool) (int, string) {
	return align([]rune(pattern), []rune(name), limit, strict)
}

func wild(r rune) bool { return r == '*' || r == 0 || r == 1 }

// cell is the best way to change the beginning of a pattern so that it matches the beginning of
// a name: that of a shorter beginning, and what it adds.
type cell struct {
	cost, i, j int
	add        []rune
}

// align fills the table of costs: best[i][j] is for the first i characters of the pattern and
// the first j of the name.
func align(p, n []rune, limit int, strict bool) (int, string) {
	hole := func(r rune) bool { return !strict && (r == 0 || r == 1) }
	best := make([][]cell, len(p)+1)
	for i := range best {
		best[i] = make([]cell, len(n)+1)
		low := 1 << 20
		for j := range best[i] {
			at := cell{cost: 1 << 20}
			if i == 0 && j == 0 {
				at.cost = 0
			}
			try := func(di, dj int, free bool, kept, changed []rune) {
				c := cell{best[i-di][j-dj].cost, i - di, j - dj, kept}
				if !free {
					c.cost, c.add = c.cost+1, changed
				}
				if c.cost < at.cost {
					at = c
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
			best[i][j] = at
			low = min(low, at.cost)
		}
		if low > limit {
			return limit + 1, ""
		}
	}
	total := best[len(p)][len(n)].cost
	if total > limit || limit == 0 {
		return total, ""
	}
	var text []rune
	for i, j := len(p), len(n); i > 0 || j > 0; i, j = best[i][j].i, best[i][j].j {
		text = slices.Insert(text, 0, best[i][j].add...)
	}
	return total, string(text)
}
