package repo

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// Prefix begins the path of every module of the repository; what follows is the
// directory of the module.
const Prefix = "github.com/ephemeralgo/ephemeral/"

// Tree is a checkout. It is read once by [Load] and not changed afterwards, so it
// may be used from several goroutines.
type Tree struct {
	FS      fs.FS
	Work    *modfile.WorkFile
	Modules []*Module // sorted by directory
	Files   []string  // every file of the checkout, sorted
}

// Module is a directory with a go.mod file. Names of directories and files are
// slash-separated and relative to the root of the tree throughout.
type Module struct {
	Dir      string
	Mod      *modfile.File
	Files    []string // without those of modules below it
	Packages []*Package
}

// Package is a directory with Go files that the go command would build or test.
type Package struct {
	Dir   string
	Files []*GoFile
}

// GoFile is what the head of a Go file says.
type GoFile struct {
	Name    string
	Package string // as in the package clause
	Imports []string
}

// Path is the module path.
func (m *Module) Path() string { return m.Mod.Module.Mod.Path }

// Test reports whether the file belongs to the tests of its package.
func (f *GoFile) Test() bool { return strings.HasSuffix(f.Name, "_test.go") }

// Module returns the module in dir; nil if there is none.
func (t *Tree) Module(dir string) *Module {
	i, ok := slices.BinarySearchFunc(t.Modules, dir, func(m *Module, dir string) int { return strings.Compare(m.Dir, dir) })
	if !ok {
		return nil
	}
	return t.Modules[i]
}

// Owner returns the module that provides the package with the given import path;
// nil if none of this repository does.
func (t *Tree) Owner(importPath string) *Module {
	dir, ok := strings.CutPrefix(importPath, Prefix)
	if !ok {
		return nil
	}
	return t.around(dir)
}

// around returns the module that the directory, or the file, belongs to.
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
	t := &Tree{FS: fsys}
	if err := t.readWork(); err != nil {
		return nil, err
	}
	if err := t.listFiles(); err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range t.Files {
		if path.Base(name) != "go.mod" || hidden(path.Dir(name)) {
			continue
		}
		m, err := readModule(fsys, name)
		errs = append(errs, err)
		if err == nil {
			t.Modules = append(t.Modules, m)
		}
	}
	slices.SortFunc(t.Modules, func(a, b *Module) int { return strings.Compare(a.Dir, b.Dir) })
	for _, name := range t.Files {
		if m := t.around(path.Dir(name)); m != nil {
			m.Files = append(m.Files, name)
			errs = append(errs, m.addGoFile(fsys, name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tree) readWork() error {
	data, err := fs.ReadFile(t.FS, "go.work")
	if err != nil {
		return err
	}
	t.Work, err = modfile.ParseWork("go.work", data, nil)
	return err
}

func (t *Tree) listFiles() error {
	return fs.WalkDir(t.FS, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && privateDir(name):
			return fs.SkipDir
		case d.Type().IsRegular():
			t.Files = append(t.Files, name)
		}
		return nil
	})
}

// privateDir reports whether the directory belongs to a tool of whoever has
// checked the tree out, and not to the repository.
func privateDir(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, ".") && base != "." && name != ".ci" && name != ".github"
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

func readModule(fsys fs.FS, name string) (*Module, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	if mod.Module == nil {
		return nil, fmt.Errorf("%s: no module line", name)
	}
	return &Module{Dir: path.Dir(name), Mod: mod}, nil
}

func (m *Module) addGoFile(fsys fs.FS, name string) error {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	if path.Ext(base) != ".go" || hidden(dir) || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
		return nil
	}
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	head, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
	if err != nil {
		return err
	}
	file := &GoFile{Name: name, Package: head.Name.Name}
	for _, spec := range head.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		file.Imports = append(file.Imports, importPath)
	}
	// The files come sorted by name, so those of a directory may be apart.
	i := slices.IndexFunc(m.Packages, func(p *Package) bool { return p.Dir == dir })
	if i < 0 {
		i = len(m.Packages)
		m.Packages = append(m.Packages, &Package{Dir: dir})
	}
	m.Packages[i].Files = append(m.Packages[i].Files, file)
	return nil
}
