package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// What is counted in a package, and has a ceiling.
const (
	names = iota
	files
	complexity
	parameters
	figures
)

var words = [figures]string{"exported names", "files", "as the complexity of a function", "parameters of a function"}

// A size is what is counted in the package in dir. Lines of tests have no ceiling, and neither have lines of code.
type size struct {
	dir         string
	code, tests int
	counts      [figures]int
	where       [figures]string // the function with the largest figure
}

// published reports whether users can import the package in dir, from core, an atom or a pattern.
func published(dir string) bool {
	return policy.Shown(dir) || policy.KindOf(dir).Published && dir != "complete" && !policy.Internal(dir) && !strings.HasPrefix(dir, "cmd/")
}

// measure counts in each package of the tree.
func measure(t *repo.Tree) []size {
	var all []size
	for _, m := range t.Modules {
		for _, p := range m.Packages {
			s := size{dir: p.Dir}
			for _, f := range p.Files {
				if f.Test() {
					s.tests += lines(f)
					continue
				}
				s.code += lines(f)
				s.counts[files]++
			}
			for _, d := range p.Decls {
				if !d.File.Test() {
					s.add(d)
				}
			}
			all = append(all, s)
		}
	}
	return all
}

// add counts a declaration.
func (s *size) add(d repo.Decl) {
	if ast.IsExported(d.Name) && (d.Recv == "" || ast.IsExported(d.Recv)) {
		s.counts[names]++
		for _, f := range d.Members() {
			for _, name := range f.Names {
				if ast.IsExported(name.Name) {
					s.counts[names]++
				}
			}
		}
	}
	fn, ok := d.Node.(*ast.FuncDecl)
	if !ok {
		return
	}
	at := fmt.Sprintf("%s in %s", d.Name, path.Base(d.File.Name))
	for i, n := range map[int]int{complexity: cyclomatic(fn), parameters: fn.Type.Params.NumFields()} {
		if n > s.counts[i] {
			s.counts[i], s.where[i] = n, at
		}
	}
}

// cyclomatic is the cyclomatic complexity of a function with the functions in it: 1, and 1 for
// each branch (McCabe, A Complexity Measure, 1976).
func cyclomatic(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
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
