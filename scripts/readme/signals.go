package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"log/slog"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/patterns/logging"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// table matches the table of signals in a Markdown file: below the marker, up to an empty line.
var table = regexp.MustCompile(`(<!-- signals -->\n)(?:.+\n)*`)

// A row is a signal that a person should know.
type row struct {
	level     slog.Level
	dir, name string
}

// signals returns the table of the signals whose names have a level in [logging.LevelOf], from
// the exported constants and kinds of all modules. A comment says when each is raised.
func signals(tree *repo.Tree) (string, error) {
	var rows []row
	for _, m := range tree.Modules {
		for _, p := range m.Packages {
			for _, d := range p.Decls {
				lit, ok := d.Signal().(*ast.BasicLit) // or a constant, here or in another package, which has its own row
				if !ok || !policy.Shown(p.Dir) || !ast.IsExported(d.Name) || d.File.Test() {
					continue
				}
				name, _ := strconv.Unquote(lit.Value) // the parser has checked it
				for name := range strings.SplitSeq(strings.TrimSuffix(name, ":*"), ",") {
					level, known := logging.LevelOf(name)
					if !known || strings.Contains(name, "*") || slices.Contains(rows, row{level, p.Dir, name}) {
						continue // it is not for this table, or a constant has it already
					}
					if d.Doc == nil {
						return "", fmt.Errorf("%s: the constant %q needs a comment that says when the signal is raised", p.Dir, name)
					}
					rows = append(rows, row{level, p.Dir, name})
				}
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.level, a.level), strings.Compare(a.name, b.name), strings.Compare(a.dir, b.dir))
	})
	text := "| signal | level | module |\n| --- | --- | --- |\n"
	for _, r := range rows {
		text += fmt.Sprintf("| `%s` | %s | [%s](../../%s) |\n", r.name, strings.ToLower(r.level.String()), path.Base(r.dir), r.dir)
	}
	return text, nil
}
