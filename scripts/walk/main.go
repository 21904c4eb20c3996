// Command walk prints the way of an operation through the files of core's root package, from
// the call of Enqueue to the call of OnDone:
//
//	go run ./scripts/walk
//
// It runs a copy of core in which every function records its call and its return. A file
// that returns without a call to another file is left out. Each return to a file that
// was left before makes a reader turn back; the last line counts these.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

//go:embed driver.txt
var driver string

// notes is code that is added to the copy of core.
const notes = `package core

var Walk = func(file string, enters bool) {}

func walks(file string) func() { Walk(file, true); return func() { Walk(file, false) } }
`

func main() {
	command.Main("walk", nil, func(ctx context.Context, root string) error {
		way, err := of(ctx, root)
		if err == nil {
			fmt.Println(strings.Join(way, " "))
			fmt.Println(returns(way), "returns to a file already left")
		}
		return err
	})
}

// of returns the files on the way of an operation, in a checkout.
func of(ctx context.Context, root string) ([]string, error) {
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "walk")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := command.WriteFiles(dir, instrumented(tree)); err != nil {
		return nil, err
	}
	env := append(os.Environ(), "GOWORK=off", "GOMAXPROCS=1", "GOFLAGS=-mod=mod")
	out, err := command.Output(ctx, filepath.Join(dir, "driver"), env, "go", "run", ".")
	if err != nil {
		return nil, err
	}
	return walk(strings.Fields(string(out))), nil
}

// instrumented returns the files of a module core whose functions record their calls, and
// the files of the program that uses it.
func instrumented(t *repo.Tree) map[string]string {
	texts := map[string]string{
		"core/go.mod":    string(t.Text("core/go.mod")),
		"core/notes.go":  notes,
		"driver/main.go": driver,
		"driver/go.mod":  "module driver\n\ngo 1.26\n\nrequire " + repo.Prefix + "core v0.0.0\n\nreplace " + repo.Prefix + "core => ../core\n",
	}
	for _, p := range t.Module("core").Packages {
		for _, f := range p.Files {
			switch {
			case f.Test():
			case p.Dir == "core":
				texts[f.Name] = noting(f)
			default:
				texts[f.Name] = f.Source(f.Syntax.FileStart, f.Syntax.FileEnd)
			}
		}
	}
	return texts
}

// noting returns the text of a file whose functions record their calls.
func noting(f *repo.GoFile) string {
	name := strings.TrimSuffix(path.Base(f.Name), ".go")
	text, end := "", f.Syntax.FileStart
	for _, d := range f.Syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			text += f.Source(end, fn.Body.Lbrace+1) + " defer walks(\"" + name + "\")();"
			end = fn.Body.Lbrace + 1
		}
	}
	return text + f.Source(end, f.Syntax.FileEnd)
}

// A call is a call of a function in a file, with the calls that it makes.
type call struct {
	file     string
	calls    []*call
	returned bool // the call returned before OnDone was called
}

// walk returns the files in the order of the way. Each field is a call, "+file", or a return,
// "-file". Goroutines run one after the other: the next one runs when an Enqueue has ended.
func walk(fields []string) []string {
	root := new(call)
	stack := []*call{root}
	for _, f := range fields {
		if file, enters := strings.CutPrefix(f, "+"); enters {
			c := &call{file: file}
			top := stack[len(stack)-1]
			top.calls = append(top.calls, c)
			stack = append(stack, c)
		} else if len(stack) > 1 {
			stack[len(stack)-1].returned = true
			stack = stack[:len(stack)-1]
		}
	}
	var way []string
	arrive := func(file string) {
		if len(way) == 0 || way[len(way)-1] != file {
			way = append(way, file)
		}
	}
	var visit func(c *call)
	visit = func(c *call) {
		for _, next := range c.calls {
			if next.file == c.file || c == root || next.goesOn(next.file) {
				arrive(next.file)
				visit(next)
				if c != root && next.returned {
					arrive(c.file)
				}
			}
		}
	}
	visit(root)
	return way
}

// goesOn reports whether the call reaches another file.
func (c *call) goesOn(file string) bool {
	return slices.ContainsFunc(c.calls, func(next *call) bool { return next.file != file || next.goesOn(file) })
}

// returns counts the arrivals at a file that was left before.
func returns(way []string) (n int) {
	for i, file := range way {
		if slices.Contains(way[:i], file) {
			n++
		}
	}
	return n
}
