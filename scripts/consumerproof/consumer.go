package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// prove takes the module as a user would, and returns the modules that came along,
// apart from itself. It fails if the module cannot be had, does not build, its
// examples do not pass, or something came along that policy does not grant it.
// Several modules can be proved at a time.
func (p *prover) prove(ctx context.Context, m *repo.Module) ([]string, error) {
	dir := filepath.Join(p.dir, "consumers", strings.ReplaceAll(m.Dir, "/", "-"))
	if err := p.writeConsumer(dir, m); err != nil {
		return nil, err
	}
	run := func(name string, args ...string) ([]byte, error) { return command(ctx, dir, p.env, name, args...) }

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
	graph, err := run("go", "mod", "graph")
	if err != nil {
		return nil, err
	}
	brought := append(required, strings.Fields(string(linked))...)
	slices.Sort(brought)
	brought = slices.DeleteFunc(slices.Compact(brought), func(modulePath string) bool { return modulePath == m.Path() })
	granted := p.granted(m, graph)
	for _, modulePath := range brought {
		if !granted[modulePath] {
			return nil, fmt.Errorf("go get brings %s along, which policy does not grant %s", modulePath, m.Dir)
		}
	}
	return brought, nil
}

// writeConsumer writes a module that consists of the examples of m, and of a test
// file that imports every package of m.
func (p *prover) writeConsumer(dir string, m *repo.Module) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	texts := map[string][]byte{"go.mod": fmt.Appendf(nil, "module example.com/consumer\n\ngo %s\n", policy.GoVersion)}
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

// granted returns the paths of the modules that may come along with m: those of the
// repository that its kind may use, the libraries they exist for, and what these
// libraries require themselves. The graph is what "go mod graph" has printed.
func (p *prover) granted(m *repo.Module, graph []byte) map[string]bool {
	granted := map[string]bool{}
	var libraries []string
	kind := policy.KindOf(m.Dir)
	for _, other := range policy.Published(p.tree) {
		if other == m || kind.MayUse(other.Dir) {
			granted[other.Path()] = true
			libraries = append(libraries, policy.LibrariesOf(other.Dir)...)
		}
	}
	requires := map[string][]string{}
	for line := range strings.Lines(string(graph)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		from, _, _ = strings.Cut(from, "@")
		to, _, _ = strings.Cut(to, "@")
		requires[from] = append(requires[from], to)
	}
	for len(libraries) > 0 {
		library := libraries[0]
		libraries = libraries[1:]
		if !granted[library] {
			granted[library] = true
			libraries = append(libraries, requires[library]...)
		}
	}
	return granted
}
