package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// proof lists what a user gets with a module.
type proof struct {
	size    int64     // size of the module's own archive
	brought []brought // other modules that were downloaded or linked, sorted
}

// brought is a module that comes along with another.
type brought struct {
	path string
	size int64 // size of its archive; 0 if it was not needed
}

// prove gets the module like a user. It fails if the go command does not get the
// module, if the module does not build, if its examples fail, or if it brings along a
// module that policy does not allow. A command is installed and tried as well. Several
// goroutines may call it.
func (p *prover) prove(ctx context.Context, m *repo.Module) (*proof, error) {
	dir := filepath.Join(p.dir, strings.ReplaceAll(m.Dir, "/", "-"))
	texts, err := p.consumer(m)
	if err == nil {
		err = command.WriteFiles(dir, texts)
	}
	if err != nil {
		return nil, err
	}
	// This module cache holds what this module downloads, and nothing else.
	cache := filepath.Join(dir, "modcache")
	env := append(slices.Clip(p.env), "GOMODCACHE="+cache)
	var linked []byte
	for _, args := range [][]string{
		{"get", m.Path() + "@" + p.version},
		{"test", "-vet=off", "-ldflags=-s -w", "-timeout=2m", "."},
		{"list", "-deps", "-test", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "."},
	} {
		if linked, err = command.Output(ctx, dir, env, "go", args...); err != nil {
			return nil, err
		}
	}
	sizes, err := archives(cache)
	if err != nil {
		return nil, err
	}
	found := &proof{size: sizes[m.Path()]}
	comes := append(strings.Fields(string(linked)), slices.Collect(maps.Keys(sizes))...)
	slices.Sort(comes)
	for _, modulePath := range slices.Compact(comes) {
		switch {
		case modulePath == m.Path():
		case !p.allowed(m, modulePath):
			return nil, fmt.Errorf("go get brings %s along, which policy does not allow for %s", modulePath, m.Dir)
		default:
			found.brought = append(found.brought, brought{modulePath, sizes[modulePath]})
		}
	}
	if policy.KindOf(m.Dir).Tool {
		return found, p.install(ctx, m, dir, env)
	}
	return found, nil
}

// consumer returns the files of a module that consists of the examples of m, and of a
// test file that imports every package of m.
func (p *prover) consumer(m *repo.Module) (map[string][]byte, error) {
	var imports bytes.Buffer
	for _, pkg := range m.Packages {
		if importable(pkg) {
			fmt.Fprintf(&imports, "\t_ %q\n", repo.Prefix+pkg.Dir)
		}
	}
	if imports.Len() == 0 {
		return nil, errors.New("there is no package to import")
	}
	texts := map[string][]byte{
		"go.mod":      fmt.Appendf(nil, "module example.com/consumer\n\ngo %s\n", policy.GoVersion),
		"all_test.go": fmt.Appendf(nil, "package %s_test\n\nimport (\n%s)\n", path.Base(m.Dir), &imports),
	}
	for _, name := range m.Files {
		if policy.Matches(m.Dir+"/example*_test.go", name) {
			texts[path.Base(name)] = p.tree.Text(name)
		}
	}
	return texts, nil
}

// importable reports whether other modules can import the package.
func importable(pkg *repo.Package) bool {
	return !policy.Internal(pkg.Dir) && slices.ContainsFunc(pkg.Files, func(f *repo.GoFile) bool { return !f.Test() && f.Package() != "main" })
}

// archives returns the sizes of the archives in the module cache, by module.
func archives(cache string) (map[string]int64, error) {
	sizes := map[string]int64{}
	download := os.DirFS(filepath.Join(cache, "cache", "download"))
	return sizes, fs.WalkDir(download, ".", func(name string, entry fs.DirEntry, err error) error {
		escaped, _, ok := strings.Cut(name, "/@v/")
		if err != nil || !ok || path.Ext(name) != ".zip" {
			return err
		}
		modulePath, err := module.UnescapePath(escaped)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sizes[modulePath] = info.Size()
		return nil
	})
}

// allowed reports whether the module with the path may come along with m. A module of the
// repository may, if the kind of m may use it. A library may, if m, or a module that m may
// use, may have a library. Package arch checks which library that is.
func (p *prover) allowed(m *repo.Module, modulePath string) bool {
	kind := policy.KindOf(m.Dir)
	if owner := p.tree.Owner(modulePath); owner != nil {
		return kind.MayUse(owner.Dir)
	}
	return slices.ContainsFunc(policy.Libraries, func(l policy.Library) bool {
		return p.tree.Module(l.Module) != nil && (l.Module == m.Dir || kind.MayUse(l.Module))
	})
}
