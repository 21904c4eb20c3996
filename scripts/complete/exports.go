package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// leftOut are packages that complete does not show, with the reason.
var leftOut = map[string]string{
	"core/coretest": "it is for tests, and imports package testing",
}

// A pkg is a package of a published module, and what it exports.
type pkg struct {
	dir     string
	name    string
	imports map[string]string // path of an import by the name it has in the package
	names   []*export         // in the order of the package's documentation: by file, by line
}

// path is the import path.
func (p *pkg) path() string { return repo.Prefix + p.dir }

// file is the name of the file in complete.
func (p *pkg) file() string { return dir + "/" + strings.ReplaceAll(p.dir, "/", "_") + ".go" }

// An export is an exported name of a package.
type export struct {
	pkg  *pkg
	name string // in its package
	as   string // in complete
	doc  string
	what any // *ast.FuncType, *ast.TypeSpec, or a token: token.CONST, token.VAR
}

func (e *export) String() string { return e.pkg.name + "." + e.name }

// exports returns the packages whose names complete shows, sorted by directory.
func exports(tree *repo.Tree) ([]*pkg, error) {
	var packages []*pkg
	for _, m := range policy.Published(tree) {
		if m.Dir == dir {
			continue
		}
		for _, from := range m.Packages {
			if _, ok := leftOut[from.Dir]; ok || slices.Contains(strings.Split(from.Dir, "/"), "internal") {
				continue
			}
			p, err := read(tree, from)
			if err != nil {
				return nil, err
			}
			if len(p.names) > 0 {
				packages = append(packages, p)
			}
		}
	}
	return packages, nil
}

// read parses a package.
func read(tree *repo.Tree, from *repo.Package) (*pkg, error) {
	p := &pkg{dir: from.Dir, name: path.Base(from.Dir), imports: map[string]string{}}
	for _, f := range from.Files {
		if f.Test() {
			continue
		}
		src, err := fs.ReadFile(tree.FS, f.Name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, spec := range file.Imports {
			if err := p.addImport(spec); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		for _, decl := range file.Decls {
			p.add(decl)
		}
	}
	return p, nil
}

func (p *pkg) addImport(spec *ast.ImportSpec) error {
	importPath, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return err
	}
	name := path.Base(importPath)
	if spec.Name != nil {
		name = spec.Name.Name
	}
	if before, ok := p.imports[name]; ok && before != importPath && name != "_" {
		return fmt.Errorf("%s is the name of %s and of %s: give one of them another in this package", name, before, importPath)
	}
	p.imports[name] = importPath
	return nil
}

func (p *pkg) add(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			p.addName(decl.Name, decl.Doc, decl.Type)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				p.addName(spec.Name, first(spec.Doc, decl.Doc), spec)
			case *ast.ValueSpec:
				doc := first(spec.Doc, spec.Comment)
				if !decl.Lparen.IsValid() {
					doc = first(doc, decl.Doc)
				}
				for _, name := range spec.Names {
					p.addName(name, doc, decl.Tok)
				}
			}
		}
	}
}

func (p *pkg) addName(name *ast.Ident, doc *ast.CommentGroup, what any) {
	if name.IsExported() {
		p.names = append(p.names, &export{pkg: p, name: name.Name, doc: doc.Text(), what: what})
	}
}

// first returns the first comment there is.
func first(comments ...*ast.CommentGroup) *ast.CommentGroup {
	for _, c := range comments {
		if c != nil {
			return c
		}
	}
	return nil
}
