// Package uses finds which files of a package use names of which other files.
package uses

import (
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// Use is the use of a name in another file than the one that declares it. The name is a
// name of the package, a method or a field.
type Use struct {
	From, To string // files, without directory and ".go"
	Name     string // T.M for methods and fields
	Pos      token.Pos
}

// Of returns the uses in the files of a package that are not tests. It checks types, so the
// package may import only the standard library. Code that does not compile is left out.
func Of(t *repo.Tree, p *repo.Package) []Use {
	var files []*ast.File
	names := map[*token.File]string{}
	for _, f := range p.Files {
		if !f.Test() {
			files = append(files, f.Syntax)
			names[t.Positions.File(f.Syntax.Pos())] = strings.TrimSuffix(path.Base(f.Name), ".go")
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.Default(), Error: func(error) {}}
	pkg, _ := conf.Check(p.Dir, t.Positions, files, info)
	var all []Use
	for id, object := range info.Uses {
		name, ok := declared(pkg, object)
		from, to := names[t.Positions.File(id.Pos())], names[t.Positions.File(object.Pos())]
		if ok && from != to {
			all = append(all, Use{from, to, name, id.Pos()})
		}
	}
	slices.SortFunc(all, func(a, b Use) int { return int(a.Pos - b.Pos) })
	return all
}

// declared returns the name of an object that the package declares outside functions.
func declared(pkg *types.Package, object types.Object) (string, bool) {
	if object.Pkg() != pkg {
		return "", false
	}
	switch o := object.(type) {
	case *types.Func:
		if recv := o.Signature().Recv(); recv != nil {
			return receiver(recv.Type()) + "." + o.Name(), true
		}
	case *types.Var:
		if o.IsField() {
			return owner(pkg, o) + "." + o.Name(), true
		}
	case *types.PkgName:
		return "", false
	}
	return object.Name(), object.Parent() == pkg.Scope()
}

func receiver(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return "interface"
}

// owner returns the name of the struct type that has the field.
func owner(pkg *types.Package, field *types.Var) string {
	for _, name := range pkg.Scope().Names() {
		if s, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if f.Pos() == field.Pos() {
					return name
				}
			}
		}
	}
	return "struct"
}

// Knots returns the groups of files that all reach each other, the largest first.
func Knots(all []Use) [][]string {
	next := map[string][]string{}
	for _, u := range all {
		next[u.From] = append(next[u.From], u.To)
	}
	reach := map[string]map[string]bool{}
	for from := range next {
		reach[from] = map[string]bool{}
		for todo := next[from]; len(todo) > 0; {
			at := todo[0]
			todo = todo[1:]
			if !reach[from][at] {
				reach[from][at] = true
				todo = append(todo, next[at]...)
			}
		}
	}
	var knots [][]string
	for _, from := range slices.Sorted(maps.Keys(reach)) {
		var knot []string
		for _, to := range slices.Sorted(maps.Keys(reach[from])) {
			if reach[to][from] {
				knot = append(knot, to)
			}
		}
		if len(knot) > 1 && knot[0] == from {
			knots = append(knots, knot)
		}
	}
	slices.SortStableFunc(knots, func(a, b []string) int { return len(b) - len(a) })
	return knots
}

// Back counts the arrows between files: a file that uses names of another one has an arrow
// to it. It also counts the arrows that lead to a file later in the order.
func Back(all []Use, order []string) (back, arrows int) {
	seen := map[[2]string]bool{}
	for _, u := range all {
		if pair := [2]string{u.From, u.To}; !seen[pair] {
			seen[pair] = true
			arrows++
			if slices.Index(order, u.From) < slices.Index(order, u.To) {
				back++
			}
		}
	}
	return back, arrows
}
