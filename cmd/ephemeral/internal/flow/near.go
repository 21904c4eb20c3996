package flow

import "strings"

// Match reports whether a name may match a part of a pattern without commas. Both may have
// holes. If it is strict, a hole of the name stands only for what a wildcard matches.
func Match(pattern, name string, strict bool) bool {
	if !strings.ContainsAny(pattern+name, "*?"+Hole+Known) {
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

// align fills the table of costs: best[i][j] is for the first i characters of the pattern and
// the first j of the name.
func align(p, n []rune, limit int, strict bool) (int, string) {
	hole := func(r rune) bool { return !strict && (r == 0 || r == 1) }
	const far = 1 << 20
	best := make([][]int, len(p)+1)
	step := make([][]byte, len(p)+1)
	for i := range best {
		best[i], step[i] = make([]int, len(n)+1), make([]byte, len(n)+1)
		low := far
		for j := range best[i] {
			if i == 0 && j == 0 {
				low = 0
				continue
			}
			at, how := far, byte(0)
			try := func(c int, s byte) {
				if c < at {
					at, how = c, s
				}
			}
			if i > 0 && j > 0 {
				switch a, b := p[i-1], n[j-1]; {
				case a == b, a == '?', wild(a), hole(b):
					try(best[i-1][j-1], '=')
				default:
					try(best[i-1][j-1]+1, 'r')
				}
				if i > 1 && j > 1 && p[i-1] == n[j-2] && p[i-2] == n[j-1] {
					try(best[i-2][j-2]+1, 's')
				}
			}
			if j > 0 { // the name has one character more
				if i > 0 && wild(p[i-1]) || hole(n[j-1]) {
					try(best[i][j-1], 'w')
				} else {
					try(best[i][j-1]+1, 'i')
				}
			}
			if i > 0 { // the pattern has one character more
				if j > 0 && hole(n[j-1]) || wild(p[i-1]) {
					try(best[i-1][j], 'k')
				} else {
					try(best[i-1][j]+1, 'd')
				}
			}
			best[i][j], step[i][j] = at, how
			low = min(low, at)
		}
		if low > limit {
			return limit + 1, ""
		}
	}
	total := best[len(p)][len(n)]
	if total > limit || limit == 0 {
		return total, ""
	}
	var back []string
	for i, j := len(p), len(n); i > 0 || j > 0; {
		switch step[i][j] {
		case '=':
			back, i, j = append(back, string(p[i-1])), i-1, j-1
		case 'r':
			back, i, j = append(back, string(n[j-1])), i-1, j-1
		case 's':
			back, i, j = append(back, string(n[j-1]), string(n[j-2])), i-2, j-2
		case 'i':
			back, j = append(back, string(n[j-1])), j-1
		case 'w':
			j--
		case 'k':
			back, i = append(back, string(p[i-1])), i-1
		case 'd':
			i--
		}
	}
	var text strings.Builder
	for i := len(back) - 1; i >= 0; i-- {
		text.WriteString(back[i])
	}
	return total, text.String()
}
