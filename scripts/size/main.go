// Command size prints how many lines of code and of tests the parts of the repository
// have, beside the limits in package policy:
//
//	go run ./scripts/size
//
// Blank lines and comments do not count. A part is a module, as in "core/...", the root
// package of core, "core", or all atoms, "atoms/...". The last line counts all tests.
// A module should not have more than 1.5 lines of tests for a line of code, which is
// checked for newer modules.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
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
	limit       policy.Limit // of the code, or of the tests if there is no code
}

// over returns how many lines there are above the limit.
func (p part) over() int {
	if p.limit.Lines == 0 {
		return 0
	}
	if p.code == 0 {
		return p.tests - p.limit.Lines
	}
	return p.code - p.limit.Lines
}

// testsOver returns how many lines of tests there are above 1.5 for each line of code, and
// above 150, if that is the limit. A module of thirty lines has an example, too.
func (p part) testsOver() int {
	if !p.limit.Tests {
		return 0
	}
	return p.tests - max(150, p.code*3/2)
}

// measure returns the parts of the tree: the root package of core, the modules, all
// atoms and all tests.
func measure(t *repo.Tree) []part {
	parts := []part{{name: "core"}}
	for _, m := range t.Modules {
		parts = append(parts, part{name: m.Dir + "/..."})
	}
	parts = append(parts, part{name: "atoms/..."}, part{name: "tests"})
	t.GoFiles(func(m *repo.Module, _ *repo.Package, f *repo.GoFile) {
		n := lines(f)
		for i := range parts {
			parts[i].add(m, f, n)
		}
	})
	for i := range parts {
		parts[i].limit = policy.LimitOf(parts[i].name)
	}
	return parts
}

// add counts a file of a module, if it belongs to the part.
func (p *part) add(m *repo.Module, f *repo.GoFile, lines int) {
	dir, tree := strings.CutSuffix(p.name, "/...")
	switch belongs := path.Dir(f.Name) == dir || tree && (m.Dir == dir || strings.HasPrefix(m.Dir, dir+"/")); {
	case f.Test() && (belongs || p.name == "tests"):
		p.tests += lines
	case belongs:
		p.code += lines
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
	fmt.Fprintln(w, "code\tlimit\tover\ttests\ttests/code\t  part")
	for _, p := range parts {
		limit, over, ratio := "", "", ""
		if p.limit.Lines > 0 {
			limit = fmt.Sprint(p.limit.Lines)
		}
		if p.over() > 0 {
			over = fmt.Sprintf("+%d", p.over())
		}
		if p.code > 0 {
			ratio = fmt.Sprintf("%.1f", float64(p.tests)/float64(p.code))
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t  %s\n", p.code, limit, over, p.tests, ratio, p.name)
	}
	return w.Flush()
}
