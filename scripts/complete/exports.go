package main

import (
	"bytes"
	"go/ast"
	"go/build"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// A pkg is a package of a published module, with its exported names.
type pkg struct {
	dir   string
	name  string
	names []*export // in the order of the package's documentation: by file, by line
}

// path is the import path.
func (p *pkg) path() string { return repo.Prefix + p.dir }

// in is the name of the package in complete.
func (p *pkg) in() string { return policy.ShownIn(p.dir) }

// file is the name of the file in complete.
func (p *pkg) file() string {
	return path.Join(dir, strings.TrimPrefix(p.in(), dir), strings.ReplaceAll(p.dir, "/", "_")+".go")
}

// An export is an exported name of a package.
type export struct {
	repo.Decl
	pkg *pkg
	as  string // the name in complete
}

func (e *export) String() string { return e.pkg.name + "." + e.Name }

// exports returns the packages whose names complete shows, sorted by directory.
func exports(tree *repo.Tree) ([]*pkg, error) {
	// Files and names are read for linux/amd64.
	system := build.Default
	system.GOOS, system.GOARCH, system.CgoEnabled, system.BuildTags = "linux", "amd64", false, nil
	system.JoinPath = path.Join
	system.OpenFile = func(name string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(tree.Text(name))), nil }
	var packages []*pkg
	for _, m := range policy.Published(tree) {
		for _, from := range m.Packages {
			if !policy.Shown(from.Dir) {
				continue
			}
			p := &pkg{dir: from.Dir, name: path.Base(from.Dir)}
			for _, d := range from.Decls {
				if !ast.IsExported(d.Name) || d.Recv != "" || d.File.Test() || d.File.Package() == "main" || from.Dir == "core" && again(d) {
					continue
				}
				if ok, err := system.MatchFile(path.Split(d.File.Name)); err != nil {
					return nil, err
				} else if ok {
					p.names = append(p.names, &export{Decl: d, pkg: p})
				}
			}
			if len(p.names) > 0 {
				packages = append(packages, p)
			}
		}
	}
	return packages, nil
}

// again reports whether a declaration gives a name of another package again, under the same name.
func again(d repo.Decl) bool {
	var of []ast.Expr
	switch spec := d.Node.(type) {
	case *ast.TypeSpec:
		of = []ast.Expr{spec.Type}
	case *ast.ValueSpec:
		of = spec.Values
	}
	return slices.ContainsFunc(of, func(x ast.Expr) bool {
		sel, ok := x.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == d.Name
	})
}
