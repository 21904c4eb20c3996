package main

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/module"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/goproxy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// TestRepository proves core and an atom of the checkout that the test runs in; before a release, all
// published modules.
func TestRepository(t *testing.T) {
	command.Long(t)
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, root)
	for _, m := range policy.Published(p.tree) {
		if os.Getenv("EPHEMERAL_REHEARSAL") == "" && m.Dir != "core" && m.Dir != "atoms/fixedwork" {
			continue
		}
		t.Run(m.Dir, func(t *testing.T) {
			t.Parallel()
			found, err := p.prove(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(found)
		})
	}
}

func start(t *testing.T, root string) *prover {
	t.Helper()
	p, err := newProver(t.Context(), t.TempDir(), root, false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// smallTree writes a small repository, replaces some of its files, and returns its root.
func smallTree(t *testing.T, exchange map[string]string) string {
	t.Helper()
	command.Long(t)
	const (
		mod  = "module github.com/ephemeralgo/ephemeral/"
		core = "github.com/ephemeralgo/ephemeral/core"
	)
	files := map[string]string{
		"go.work":      "go 1.26\n\nuse (\n\t./atoms/echo\n\t./atoms/retry\n\t./core\n)\n",
		"CHANGELOG.md": "## [Unreleased] - v0.99.9\n",
		"LICENSE":      "free\n",

		"core/go.mod":              mod + "core\n\ngo 1.26\n",
		"core/core.go":             "package core\n\nfunc Name() string { return \"core\" }\n",
		"core/internal/in/in.go":   "package in\n",
		"core/example_sub_test.go": "package core_test\n\nimport (\n\t\"fmt\"\n\n\t\"" + core + "\"\n)\n\nfunc ExampleName() {\n\tfmt.Println(core.Name())\n\t// Output: core\n}\n",

		"atoms/echo/go.mod":  mod + "atoms/echo\n\ngo 1.26\n",
		"atoms/echo/echo.go": "package echo\n",

		"atoms/retry/go.mod":          mod + "atoms/retry\n\ngo 1.26\n\nrequire " + core + " v0.99.9\n\nreplace " + core + " => ../../core\n",
		"atoms/retry/retry.go":        "package retry\n\nimport \"" + core + "\"\n\nfunc Name() string { return \"retry on \" + core.Name() }\n",
		"atoms/retry/example_test.go": "package retry_test\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/ephemeralgo/ephemeral/atoms/retry\"\n)\n\nfunc Example() {\n\tfmt.Println(retry.Name())\n\t// Output: retry on core\n}\n",
	}
	maps.Copy(files, exchange)
	root := t.TempDir()
	if err := command.WriteFiles(root, files); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestProve(t *testing.T) {
	const prefix = "github.com/ephemeralgo/ephemeral/"
	tests := []struct {
		name     string
		module   string
		exchange map[string]string
		brings   string
		fails    string
	}{
		{
			name:   "atom with a library in its tests",
			module: "atoms/retry",
			exchange: map[string]string{
				"atoms/retry/go.mod":        "module " + prefix + "atoms/retry\n\ngo 1.26\n\nrequire (\n\t" + prefix + "core v0.99.9\n\t" + policy.Testify + " v1.99.9\n)\n",
				"atoms/retry/retry_test.go": "package retry\n\nimport _ \"" + policy.Testify + "/assert\"\n",
			},
			brings: "(N kB) brings 1, N kB: core (N kB)",
		},
		{
			name:     "no package",
			module:   "atoms/echo",
			exchange: map[string]string{"atoms/echo/echo.go": "package main\n\nfunc main() {}\n"},
			fails:    "no package to import",
		},
		{
			name:     "example fails",
			module:   "core",
			exchange: map[string]string{"core/core.go": "package core\n\nfunc Name() string { return \"broken\" }\n"},
			fails:    "broken",
		},
		{
			name:   "requirement of another version",
			module: "atoms/retry",
			exchange: map[string]string{
				"atoms/retry/go.mod": "module " + prefix + "atoms/retry\n\ngo 1.26\n\nrequire " + prefix + "core v1.0.0\n\nreplace " + prefix + "core => ../../core\n",
			},
			fails: "core@v1.0.0",
		},
		{
			name:   "atom that brings another",
			module: "atoms/retry",
			exchange: map[string]string{
				"atoms/retry/go.mod":    "module " + prefix + "atoms/retry\n\ngo 1.26\n\nrequire (\n\t" + prefix + "atoms/echo v0.99.9\n\t" + prefix + "core v0.99.9\n)\n",
				"atoms/retry/sub/to.go": "package sub\n\nimport _ \"" + prefix + "atoms/echo\"\n",
			},
			fails: "go get brings " + prefix + "atoms/echo along",
		},
		{
			name:   "atom that brings a package of another module by way of its example",
			module: "atoms/retry",
			exchange: map[string]string{
				"atoms/retry/example_test.go": "package retry_test\n\nimport _ \"" + prefix + "atoms/echo\"\n",
			},
			fails: "atoms/echo",
		},
		{
			name:     "package that needs the workspace",
			module:   "atoms/retry",
			exchange: map[string]string{"atoms/retry/sub/to.go": "package sub\n\nimport _ \"" + prefix + "atoms/gone\"\n"},
			fails:    prefix + "atoms/gone",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, smallTree(t, test.exchange))
			found, err := p.prove(t.Context(), p.tree.Module(test.module))
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got error %v, want one with %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := unweighed(found.String()); got != test.brings {
				t.Errorf("got %q, want %q", got, test.brings)
			}
		})
	}
}

// unweighed returns the text without its sizes: archives are not the same with every Go.
func unweighed(text string) string {
	return regexp.MustCompile(`\d+ kB`).ReplaceAllString(text, "N kB")
}

// Modules of the tree must not stay in the user's module cache.
func TestProveLeavesTheModuleCacheAlone(t *testing.T) {
	p := start(t, smallTree(t, nil))
	if _, err := p.prove(t.Context(), p.tree.Module("atoms/retry")); err != nil {
		t.Fatal(err)
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	escaped, err := module.EscapePath(repo.Prefix + "core")
	if err != nil {
		t.Fatal(err)
	}
	core := filepath.FromSlash(escaped) + "@v0.99.9"
	name := filepath.Join(strings.TrimSpace(string(cache)), core)
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("%s: %v, want it not to exist", name, err)
	}
	own := filepath.Join(p.dir, "atoms-retry", "modcache", core)
	if _, err := os.Stat(filepath.Join(own, "LICENSE")); err != nil {
		t.Error("the license did not come along:", err)
	}
}

func TestRun(t *testing.T) {
	root := smallTree(t, map[string]string{"atoms/echo/echo.go": "package echo\n\nvar x int = \"\"\n"})
	var out strings.Builder
	err := run(t.Context(), root, false, &out)
	if err == nil || err.Error() != "v0.99.9: 1 of 3 modules failed" {
		t.Errorf("got %v, want one of three to fail", err)
	}
	for _, want := range []string{
		"FAIL atoms/echo\n",
		"ok   atoms/retry (N kB) brings 1, N kB: core (N kB)\n",
		"ok   core (N kB) brings nothing else\n",
	} {
		if !strings.Contains(unweighed(out.String()), want) {
			t.Errorf("printed %q, want it to contain %q", out.String(), want)
		}
	}
}

// A released module is taken from the proxy of the environment, at its own version.
func TestRunPublished(t *testing.T) {
	root := smallTree(t, map[string]string{"CHANGELOG.md": "## [Unreleased] - v0.100.0\n\n## v0.99.9 - 2026-01-31\n"})
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	t.Setenv("GOPROXY", goproxy.URL(proxy))
	t.Setenv("GOSUMDB", "off")
	for _, step := range []struct{ serves, fails string }{{"v0.100.0", "v0.99.9: 3 of 3 modules failed"}, {"v0.99.9", ""}} {
		if err := goproxy.Write(proxy, tree, step.serves); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := run(t.Context(), root, true, &out); step.fails == "" && err != nil || step.fails != "" && (err == nil || err.Error() != step.fails) {
			t.Errorf("when %s is there: %v, want %q\n%s", step.serves, err, step.fails, &out)
		}
	}
	root = smallTree(t, nil)
	if err := run(t.Context(), root, true, io.Discard); err == nil || !strings.Contains(err.Error(), "nothing is released yet") {
		t.Errorf("got %v", err)
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 kB", 1499: "1 kB", 999_000: "999 kB", 1_250_000: "1.2 MB"} {
		if got := size(bytes); got != want {
			t.Errorf("%d bytes are %s, want %s", bytes, got, want)
		}
	}
}
