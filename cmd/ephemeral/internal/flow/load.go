// Package flow finds out which texts a program uses as names of signals, lanes and classes. It
// reads the packages of the program from source. What the library does with texts, it takes
// from package roles.
//
// The order of statements does not matter to it: a variable may have every value that is
// assigned to it anywhere. What it cannot follow is a hole in a text.
package flow

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
)

// Package is a package that is read from source.
type Package struct {
	*packages.Package
	Asked bool            // one of the patterns matches it
	Deps  map[string]bool // import paths of all packages below it, and its own
}

// World is all that was read.
type World struct {
	Fset     *token.FileSet
	Packages []*Package
	dir      string // the working directory
	index
}

// Load reads the packages in dir that match the patterns, and the packages below them that
// use the library. With tests, it reads the tests as well. Packages that do not compile are
// an error.
func Load(ctx context.Context, dir string, tests bool, patterns ...string) (*World, error) {
	conf := packages.Config{
		Context: ctx, Dir: dir, Tests: tests, Fset: token.NewFileSet(),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule | packages.NeedForTest,
	}
	graph, err := packages.Load(&conf, patterns...)
	if err != nil {
		return nil, err
	}
	asked, deps := map[string]bool{}, map[string]map[string]bool{}
	uses := map[string]bool{} // packages that use the library, or belong to the user's modules
	read := map[string]bool{} // the files of these packages
	for _, p := range graph {
		asked[p.ID] = true
	}
	packages.Visit(graph, nil, func(p *packages.Package) {
		all := map[string]bool{p.PkgPath: true}
		for _, to := range p.Imports {
			maps.Copy(all, deps[to.ID])
			uses[p.ID] = uses[p.ID] || uses[to.ID] || roles.Dir(to.PkgPath) != ""
		}
		deps[p.ID] = all
		uses[p.ID] = roles.Dir(p.PkgPath) == "" && p.Module != nil && (uses[p.ID] || p.Module.Main)
		if uses[p.ID] && !asked[p.ID] {
			patterns = append(slices.Clip(patterns), p.PkgPath)
		}
		for _, file := range p.GoFiles {
			read[file] = read[file] || uses[p.ID] || asked[p.ID]
		}
	})
	// With NeedDeps, types come from source. Without it, the go command compiles what packages import. Of other packages, functions have no bodies.
	conf.ParseFile = func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
		file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if file != nil && !read[name] {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					f.Body = nil
				}
			}
		}
		return file, err
	}
	conf.Mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes |
		packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule | packages.NeedForTest
	loaded, err := packages.Load(&conf, patterns...)
	if err != nil {
		return nil, err
	}
	w, errs := &World{Fset: conf.Fset}, []error{}
	w.dir, _ = os.Getwd()
	for _, p := range loaded {
		if _, known := uses[p.ID]; !known {
			continue // a test of a package that the asked ones import: its functions have no bodies
		}
		for _, e := range p.Errors {
			errs = append(errs, e)
		}
		if uses[p.ID] && !strings.HasSuffix(p.PkgPath, ".test") && p.Types != nil && len(p.Syntax) > 0 {
			w.Packages = append(w.Packages, &Package{Package: p, Asked: asked[p.ID], Deps: deps[p.ID]})
		}
	}
	if len(errs) == 0 && len(loaded) == 0 {
		errs = append(errs, fmt.Errorf("no packages match %s", strings.Join(patterns, " ")))
	}
	if len(errs) == 0 {
		w.Index()
	}
	return w, errors.Join(errs...)
}

// Unit is a declaration outside functions. Programs are made of units: what is not reachable
// does not count. Variables are initialized in every program with their package. In an example,
// only those count that it mentions.
type Unit struct {
	Pkg    *Package
	Object types.Object // nil for "var _" and init functions
	Node   ast.Node
	Uses   []types.Object // what it mentions
	Test   bool           // it belongs to a test, which is no example
	Always bool           // it runs in every program with its package
	Facts  []Fact

	directives []directive
}

// Program reports whether a root is a function main. Others are examples, which may leave out
// what the rest of a program does.
func (u *Unit) Program() bool { return u.Object != nil && u.Object.Name() == "main" }

func (u *Unit) add(f Fact) {
	f.Unit = u
	u.Facts = append(u.Facts, f)
}

// Asked returns the facts of the packages that were asked for.
func (w *World) Asked() (all []Fact) {
	for _, u := range w.Units {
		if u.Pkg.Asked {
			all = append(all, u.Facts...)
		}
	}
	return all
}

// Roots returns the programs of the world: each function main and each example, with the
// packages that are linked into it.
func (w *World) Roots() (roots []*Unit) {
	for _, u := range w.Units {
		fn, ok := u.Node.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !u.Pkg.Asked {
			continue
		}
		file := w.Fset.Position(fn.Pos()).Filename
		switch {
		case u.Pkg.Name == "main" && u.Program() && u.Pkg.ForTest == "",
			strings.HasPrefix(fn.Name.Name, "Example") && strings.HasSuffix(file, "_test.go") && fn.Type.Params.NumFields() == 0:
			roots = append(roots, u)
		}
	}
	return roots
}

// Reach returns the units of the program that begins with root.
func (w *World) Reach(root *Unit) []*Unit {
	seen := map[*Unit]bool{}
	var all []*Unit
	var visit func(u *Unit)
	visit = func(u *Unit) {
		if seen[u] {
			return
		}
		seen[u] = true
		all = append(all, u)
		for _, o := range u.Uses {
			for _, used := range w.units[o] {
				visit(used)
			}
		}
	}
	visit(root)
	for _, u := range w.Units {
		_, isInit := u.Node.(*ast.FuncDecl)
		if u.Always && (root.Program() || isInit) && root.Pkg.Deps[u.Pkg.PkgPath] {
			visit(u)
		}
	}
	return all
}
