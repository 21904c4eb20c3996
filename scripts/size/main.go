// Command size prints how many lines of code and of tests the parts of the repository
// have, beside the limits in package policy:
//
//	go run ./scripts/size
//
// Blank lines and comments do not count. A part is a module, as in "core/...", the root
// package of core, "core", or all atoms, "atoms/...". The last part is everything. A limit
// is the goal in package policy and 5 % of room above it; the column "over" shows how far a
// part is above its goal, and the test fails above the limit.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

func main() {
	command.Main("size", nil, func(_ context.Context, root string) error {
		tree, err := repo.Load(os.DirFS(root))
		if err != nil {
			return err
		}
		return write(os.Stdout, measure(tree))
	})
}

// A part of the repository, with its lines.
type part struct {
	name        string
	code, tests int
	goal        policy.Limit
	files       []file // files with code, the largest first
}

type file struct {
	name  string
	lines int
}

// over returns how many lines the part is above the goal.
func (p part) over() int {
	if p.goal.Lines == 0 {
		return 0
	}
	return p.code - p.goal.Lines
}

// faults returns two lists of texts. The first list has what is above a goal by more than
// policy.Room percent, and must not be merged. The second list has what is above a goal by
// less.
func (p part) faults() (faults, warnings []string) {
	note := func(is, wanted int, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if is*100 > wanted*(100+policy.Room) {
			faults = append(faults, text)
		} else if is > wanted {
			warnings = append(warnings, text)
		}
	}
	if p.goal.Lines > 0 {
		var largest []string
		for _, f := range p.files[:min(3, len(p.files))] {
			largest = append(largest, fmt.Sprintf("%s (%d)", f.name, f.lines))
		}
		note(p.code, p.goal.Lines, "%s has %d lines of code, %d more than its goal: %s. Cut what another module has too, or begin with its largest files: %s",
			p.name, p.code, p.over(), p.goal.Reason, strings.Join(largest, ", "))
	}
	if p.goal.Tests > 0 {
		wanted := max(150, p.code*p.goal.Tests/100) // even a module of thirty lines needs an example
		note(p.tests, wanted, "%s has %d lines of tests, %d more than its goal, which is %d for 100 lines of code: which promise is tested twice?",
			p.name, p.tests, p.tests-wanted, p.goal.Tests)
	}
	return faults, warnings
}

// measure returns the parts of the tree: the root package of core, the modules, all
// atoms and everything.
func measure(t *repo.Tree) []part {
	parts := []part{{name: "core"}}
	for _, m := range t.Modules {
		parts = append(parts, part{name: m.Dir + "/..."})
	}
	parts = append(parts, part{name: "atoms/..."}, part{name: "..."})
	t.GoFiles(func(m *repo.Module, _ *repo.Package, f *repo.GoFile) {
		n := lines(f)
		for i := range parts {
			parts[i].add(m, f, n)
		}
	})
	for i := range parts {
		parts[i].goal = policy.LimitOf(parts[i].name)
		slices.SortStableFunc(parts[i].files, func(a, b file) int { return b.lines - a.lines })
	}
	return parts
}

// add counts a file of a module, if it belongs to the part.
func (p *part) add(m *repo.Module, f *repo.GoFile, lines int) {
	dir, tree := strings.CutSuffix(p.name, "/...")
	switch belongs := p.name == "..." || path.Dir(f.Name) == dir || tree && (m.Dir == dir || strings.HasPrefix(m.Dir, dir+"/")); {
	case !belongs:
	case f.Test():
		p.tests += lines
	default:
		p.code += lines
		p.files = append(p.files, file{f.Name, lines})
	}
}

// lines counts the lines of a file that hold more than blanks and comments.
func lines(f *repo.GoFile) int {
	text := f.Source(f.Syntax.FileStart, f.Syntax.FileEnd)
	var code strings.Builder
	done := 0
	for _, group := range f.Syntax.Comments {
		for _, c := range group.List {
			start, end := int(c.Pos()-f.Syntax.FileStart), int(c.End()-f.Syntax.FileStart)
			code.WriteString(text[done:start])
			code.WriteString(strings.Repeat("\n", strings.Count(text[start:end], "\n")))
			done = end
		}
	}
	code.WriteString(text[done:])
	n := 0
	for line := range strings.Lines(code.String()) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

// write prints the parts as a table.
func write(out io.Writer, parts []part) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "code\tgoal\tover\ttests\ttests/code\t  part")
	for _, p := range parts {
		goal, over, ratio := "", "", ""
		if p.goal.Lines > 0 {
			goal = fmt.Sprint(p.goal.Lines)
		}
		if p.over() > 0 {
			over = fmt.Sprintf("+%d", p.over())
		}
		if p.code > 0 {
			ratio = fmt.Sprintf("%.2f", float64(p.tests)/float64(p.code))
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t  %s\n", p.code, goal, over, p.tests, ratio, p.name)
	}
	return w.Flush()
}
