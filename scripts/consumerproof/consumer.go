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

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// proof tells what a user gets with a module.
type proof struct {
	size    int64     // of the archive of the module itself
	brought []brought // what else was downloaded, linked or written into go.mod, sorted
	named   []string  // modules that go.mod files tell of, such as those for tests; they were not downloaded
}

// brought is a module that comes along with another.
type brought struct {
	path   string
	size   int64 // of its archive; 0 if nothing needed it
	direct bool  // the other requires it itself
}

// prove takes the module as a user would. It fails if the module cannot be had, does
// not build, its examples do not pass, or something comes along that policy does not
// grant it. Several modules can be proved at a time.
func (p *prover) prove(ctx context.Context, m *repo.Module) (*proof, error) {
	dir := filepath.Join(p.dir, strings.ReplaceAll(m.Dir, "/", "-"))
	if err := p.writeConsumer(dir, m); err != nil {
		return nil, err
	}
	// In a module cache of its own stands what this module downloads, and nothing else.
	cache := filepath.Join(dir, "modcache")
	env := append(slices.Clip(p.env), "GOMODCACHE="+cache)
	run := func(name string, args ...string) ([]byte, error) { return command.Output(ctx, dir, env, name, args...) }

	if _, err := run("go", "get", m.Path()+"@"+p.version); err != nil {
		return nil, err
	}
	required, err := requiredIn(dir)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "program.exe") // Windows wants the suffix, the others do not mind
	if _, err := run("go", "test", "-c", "-ldflags=-s -w", "-o", program, "."); err != nil {
		return nil, err
	}
	if _, err := run(program, "-test.timeout=2m"); err != nil {
		return nil, err
	}
	linked, err := run("go", "list", "-deps", "-test", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", ".")
	if err != nil {
		return nil, err
	}
	out, err := run("go", "mod", "graph")
	if err != nil {
		return nil, err
	}
	sizes, err := archives(cache)
	if err != nil {
		return nil, err
	}
	graph := parseGraph(out)
	granted := p.granted(m, graph)
	found := &proof{size: sizes[m.Path()]}
	comes := slices.Concat(required, strings.Fields(string(linked)), slices.Collect(maps.Keys(sizes)))
	slices.Sort(comes)
	for _, modulePath := range slices.Compact(comes) {
		if modulePath == m.Path() {
			continue
		}
		if !granted[modulePath] {
			return nil, fmt.Errorf("go get brings %s along, which policy does not grant %s", modulePath, m.Dir)
		}
		found.brought = append(found.brought, brought{modulePath, sizes[modulePath], requires(m, modulePath)})
	}
	for _, modulePath := range slices.Sorted(maps.Keys(graph)) {
		if modulePath != consumer && !slices.Contains(comes, modulePath) {
			found.named = append(found.named, modulePath)
		}
	}
	return found, nil
}

// consumer is the path of the throw-away modules.
const consumer = "example.com/consumer"

// requires reports whether m itself needs the module.
func requires(m *repo.Module, modulePath string) bool {
	return slices.ContainsFunc(m.Mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == modulePath && !r.Indirect })
}

// writeConsumer writes a module that consists of the examples of m, and of a test
// file that imports every package of m.
func (p *prover) writeConsumer(dir string, m *repo.Module) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	texts := map[string][]byte{"go.mod": fmt.Appendf(nil, "module %s\n\ngo %s\n", consumer, policy.GoVersion)}
	var imports bytes.Buffer
	for _, pkg := range m.Packages {
		if importable(pkg) {
			fmt.Fprintf(&imports, "\t_ %q\n", repo.Prefix+pkg.Dir)
		}
	}
	if imports.Len() == 0 {
		return errors.New("there is no package to import")
	}
	texts["all_test.go"] = fmt.Appendf(nil, "package %s_test\n\nimport (\n%s)\n", path.Base(m.Dir), &imports)
	for _, name := range m.Files {
		if ok, _ := path.Match(m.Dir+"/example*_test.go", name); ok {
			text, err := fs.ReadFile(p.tree.FS, name)
			if err != nil {
				return err
			}
			texts[path.Base(name)] = text
		}
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// importable reports whether other modules can import the package.
func importable(pkg *repo.Package) bool {
	return !strings.Contains(pkg.Dir+"/", "/internal/") &&
		slices.ContainsFunc(pkg.Files, func(f *repo.GoFile) bool { return !f.Test() && f.Package != "main" })
}

// requiredIn returns the paths of the modules that the go.mod file in dir requires.
func requiredIn(dir string) ([]string, error) {
	name := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, r := range mod.Require {
		paths = append(paths, r.Mod.Path)
	}
	return paths, nil
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

// parseGraph returns what each module requires, from what "go mod graph" prints.
// Versions do not matter here.
func parseGraph(printed []byte) map[string][]string {
	graph := map[string][]string{}
	for line := range strings.Lines(string(printed)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		from, _, _ = strings.Cut(from, "@")
		to, _, _ = strings.Cut(to, "@")
		if to != "go" && to != "toolchain" {
			graph[from] = append(graph[from], to)
			if _, ok := graph[to]; !ok {
				graph[to] = nil
			}
		}
	}
	return graph
}

// granted returns the modules that may come along with m: those of the repository
// that its kind may use, the libraries they exist for, and what these libraries
// require themselves. What their tests use is not among them.
func (p *prover) granted(m *repo.Module, graph map[string][]string) map[string]bool {
	granted := map[string]bool{}
	var libraries []string
	kind := policy.KindOf(m.Dir)
	for _, other := range policy.Published(p.tree) {
		if other == m || kind.MayUse(other.Dir) {
			granted[other.Path()] = true
			libraries = append(libraries, policy.LibrariesOf(other.Dir)...)
		}
	}
	for len(libraries) > 0 {
		library := libraries[0]
		libraries = libraries[1:]
		if !granted[library] {
			granted[library] = true
			libraries = append(libraries, graph[library]...)
		}
	}
	return granted
}
