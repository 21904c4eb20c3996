package repo

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// Prefix is the beginning of the path of every module of the repository. The directory of
// the module follows.
const Prefix = "github.com/ephemeralgo/ephemeral/"

// Tree is a checkout. [Load] reads it once. Nothing changes it afterwards, so several
// goroutines may use it.
type Tree struct {
	Work    *modfile.WorkFile
	Modules []*Module // sorted by directory
	Files   []string  // every file of the checkout, sorted

	texts     map[string][]byte // by file
	Positions *token.FileSet    // positions in the Go files
}

// Module is a directory with a go.mod file. All names of directories and files are
// slash-separated and relative to the root of the tree.
type Module struct {
	Dir      string
	Mod      *modfile.File
	Files    []string // without the files of modules below it
	Packages []*Package
}

// Package is a directory with Go files that the go command would build or test.
type Package struct {
	Dir   string
	Files []*GoFile
	Decls []Decl // what the files declare, by file and by line
}

// GoFile is a Go file. Its syntax is shared: do not change it.
type GoFile struct {
	Name    string
	Syntax  *ast.File
	Imports []string
	text    []byte
}

// Path is the module path.
func (m *Module) Path() string { return m.Mod.Module.Mod.Path }

// Requires reports whether the module's go.mod requires the module with the given path.
func (m *Module) Requires(modulePath string) bool {
	return slices.ContainsFunc(m.Mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == modulePath })
}

// Package is the name in the package clause.
func (f *GoFile) Package() string { return f.Syntax.Name.Name }

// Test reports whether the file belongs to the tests of its package.
func (f *GoFile) Test() bool { return strings.HasSuffix(f.Name, "_test.go") }

// Source returns a piece of the file.
func (f *GoFile) Source(from, to token.Pos) string {
	return string(f.text[from-f.Syntax.FileStart : to-f.Syntax.FileStart])
}

// GoFiles calls f with every Go file that the go command would build or test.
func (t *Tree) GoFiles(f func(m *Module, p *Package, file *GoFile)) {
	for _, m := range t.Modules {
		for _, p := range m.Packages {
			for _, file := range p.Files {
				f(m, p, file)
			}
		}
	}
}

// Text returns the contents of a file.
func (t *Tree) Text(name string) []byte { return t.texts[name] }

// At returns the file and the line of a position in a Go file.
func (t *Tree) At(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", t.Positions.File(pos).Name(), t.Line(pos))
}

// Line returns the line of a position in a Go file.
func (t *Tree) Line(pos token.Pos) int { return t.Positions.Position(pos).Line }

// Module returns the module in dir; nil if there is none.
func (t *Tree) Module(dir string) *Module {
	i, ok := slices.BinarySearchFunc(t.Modules, dir, func(m *Module, dir string) int { return strings.Compare(m.Dir, dir) })
	if !ok {
		return nil
	}
	return t.Modules[i]
}

// Package returns the package in dir, which is empty if there is none.
func (t *Tree) Package(dir string) *Package {
	if m := t.around(dir); m != nil {
		for _, p := range m.Packages {
			if p.Dir == dir {
				return p
			}
		}
	}
	return &Package{Dir: dir}
}

// Owner returns the module with the package of the given import path; nil if no module of
// this repository has it.
func (t *Tree) Owner(importPath string) *Module {
	dir, ok := strings.CutPrefix(importPath, Prefix)
	if !ok {
		return nil
	}
	return t.around(dir)
}

// around returns the module of the directory or file.
func (t *Tree) around(name string) *Module {
	for ; name != "."; name = path.Dir(name) {
		if m := t.Module(name); m != nil {
			return m
		}
	}
	return nil
}

// Load reads the tree. It fails if a go.work, go.mod or Go file cannot be parsed.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{texts: map[string][]byte{}, Positions: token.NewFileSet()}
	if err := t.readFiles(fsys); err != nil {
		return nil, err
	}
	var errs []error
	var err error
	t.Work, err = modfile.ParseWork("go.work", t.texts["go.work"], nil)
	errs = append(errs, err)
	for _, name := range t.Files {
		if path.Base(name) != "go.mod" || hidden(path.Dir(name)) {
			continue
		}
		mod, err := modfile.Parse(name, t.texts[name], nil)
		if err == nil && mod.Module == nil {
			err = fmt.Errorf("%s: no module line", name)
		}
		if errs = append(errs, err); err == nil {
			t.Modules = append(t.Modules, &Module{Dir: path.Dir(name), Mod: mod})
		}
	}
	slices.SortFunc(t.Modules, func(a, b *Module) int { return strings.Compare(a.Dir, b.Dir) })
	for _, name := range t.Files {
		if m := t.around(path.Dir(name)); m != nil {
			m.Files = append(m.Files, name)
			errs = append(errs, t.addGoFile(m, name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tree) readFiles(fsys fs.FS) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && private(name):
			return fs.SkipDir
		case d.Type().IsRegular() && name != ".git": // .git is a file in a tree of "git worktree add"
			t.Files = append(t.Files, name)
			t.texts[name], err = fs.ReadFile(fsys, name)
		}
		return err
	})
}

// private reports whether the directory belongs to a tool of the user who has checked
// the tree out, and not to the repository.
func private(dir string) bool {
	return strings.HasPrefix(path.Base(dir), ".") && !slices.Contains([]string{".", ".ci", ".github"}, dir)
}

// hidden reports whether the go command leaves the directory out when it looks
// for packages.
func hidden(dir string) bool {
	for elem := range strings.SplitSeq(dir, "/") {
		if elem == "testdata" || elem == "vendor" || elem != "." && strings.HasPrefix(elem, ".") || strings.HasPrefix(elem, "_") {
			return true
		}
	}
	return false
}

func (t *Tree) addGoFile(m *Module, name string) error {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	if path.Ext(base) != ".go" || hidden(dir) || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
		return nil
	}
	file := &GoFile{Name: name, text: t.texts[name]}
	var err error
	file.Syntax, err = parser.ParseFile(t.Positions, name, file.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, spec := range file.Syntax.Imports {
		importPath, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		file.Imports = append(file.Imports, importPath)
	}
	// Files are sorted by name, so files of other directories may stand between the files of
	// one package.
	i := slices.IndexFunc(m.Packages, func(p *Package) bool { return p.Dir == dir })
	if i < 0 {
		i = len(m.Packages)
		m.Packages = append(m.Packages, &Package{Dir: dir})
	}
	p := m.Packages[i]
	p.Files = append(p.Files, file)
	for _, decl := range file.Syntax.Decls {
		p.Decls = append(p.Decls, declared(file, decl)...)
	}
	return nil
}
