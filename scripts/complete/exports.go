package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"regexp"
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
	dir   string
	name  string
	names []*export // in the order of the package's documentation: by file, by line
}

// path is the import path.
func (p *pkg) path() string { return repo.Prefix + p.dir }

// file is the name of the file in complete.
func (p *pkg) file() string { return dir + "/" + strings.ReplaceAll(p.dir, "/", "_") + ".go" }

// An export is an exported name of a package.
type export struct {
	pkg     *pkg
	imports map[string]string // of its file: path by name
	name    string            // in its package
	as      string            // in complete
	doc     string
	what    any // *ast.FuncType, *ast.TypeSpec, or a token: token.CONST, token.VAR
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

// read parses a package, of which it looks at the files that linux/amd64 has.
func read(tree *repo.Tree, from *repo.Package) (*pkg, error) {
	p := &pkg{dir: from.Dir, name: path.Base(from.Dir)}
	system := build.Default
	system.GOOS, system.GOARCH, system.CgoEnabled, system.BuildTags = "linux", "amd64", false, nil
	system.JoinPath = path.Join
	system.OpenFile = func(name string) (io.ReadCloser, error) { return tree.FS.Open(name) }
	for _, f := range from.Files {
		if f.Test() || f.Package == "main" {
			continue
		}
		if ok, err := system.MatchFile(path.Split(f.Name)); err != nil {
			return nil, err
		} else if !ok {
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
		imports, err := importsOf(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		before := len(p.names)
		for _, decl := range file.Decls {
			p.add(decl)
		}
		for _, e := range p.names[before:] {
			e.imports = imports
		}
	}
	return p, nil
}

// importsOf returns the paths of the packages that a file imports by their names.
func importsOf(file *ast.File) (map[string]string, error) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		name := importName(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			return nil, fmt.Errorf("it is not known which names are of %s: do not import it as a dot", importPath)
		}
		imports[name] = importPath
	}
	return imports, nil
}

// major is the end of a path that stands for a major version.
var major = regexp.MustCompile(`[/.]v[0-9]+$`)

// importName guesses the name of a package by its path.
func importName(importPath string) string { return path.Base(major.ReplaceAllString(importPath, "")) }

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
