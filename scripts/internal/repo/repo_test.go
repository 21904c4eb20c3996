package repo

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestLoad(t *testing.T) {
	fsys := fstest.MapFS{}
	for name, text := range map[string]string{
		"go.work":                       "go 1.26\n\nuse ./core\n",
		"core/go.mod":                   "module github.com/ephemeralgo/ephemeral/core\n",
		"core/doc.go":                   "package core\n\nimport `fmt`\n",
		"core/lru/lru.go":               "package lru\n",
		"core/sink.go":                  "package core\n",
		"core/testdata/bad.go":          "not Go",
		"core/testdata/mod/go.mod":      "not a module",
		"core/_old.go":                  "not Go",
		"atoms/data/go.mod":             "module github.com/ephemeralgo/ephemeral/atoms/data\n",
		"atoms/data/data.go":            "package data\n",
		"atoms/data/sqlite/go.mod":      "module github.com/ephemeralgo/ephemeral/atoms/data/sqlite\n",
		"atoms/data/sqlite/q/q_test.go": "package q\n",
		".git/config":                   "",
		".editor/settings":              "",
		".github/workflows/ci.yml":      "",
		".gitignore":                    "",
	} {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range tree.Modules {
		got = append(got, m.Dir+":")
		for _, p := range m.Packages {
			for _, f := range p.Files {
				got = append(got, f.Name+strings.Join(f.Imports, ","))
			}
		}
	}
	want := []string{
		"atoms/data:", "atoms/data/data.go",
		"atoms/data/sqlite:", "atoms/data/sqlite/q/q_test.go",
		"core:", "core/doc.gofmt", "core/sink.go", "core/lru/lru.go",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for name, listed := range map[string]bool{".git/config": false, ".editor/settings": false, ".github/workflows/ci.yml": true, ".gitignore": true} {
		if slices.Contains(tree.Files, name) != listed {
			t.Errorf("%s listed: %v, want %v", name, !listed, listed)
		}
	}
	for path, dir := range map[string]string{
		Prefix + "core":                "core",
		Prefix + "core/lru":            "core",
		Prefix + "atoms/data/sqlite/q": "atoms/data/sqlite",
		Prefix + "atoms/data/file":     "atoms/data",
		Prefix + "atoms/gone":          "",
		"github.com/other/core":        "",
		"fmt":                          "",
	} {
		got := ""
		if m := tree.Owner(path); m != nil {
			got = m.Dir
		}
		if got != dir {
			t.Errorf("Owner(%q) = %q, want %q", path, got, dir)
		}
	}
}

func TestLoadReportsEveryBrokenFile(t *testing.T) {
	fsys := fstest.MapFS{
		"go.work":        {Data: []byte("go 1.26\n")},
		"core/go.mod":    {Data: []byte("go 1.26\n")},
		"atoms/a/go.mod": {Data: []byte("module x\n")},
		"atoms/a/a.go":   {Data: []byte("pakage a\n")},
	}
	_, err := Load(fsys)
	if err == nil || !strings.Contains(err.Error(), "core/go.mod") || !strings.Contains(err.Error(), "atoms/a/a.go") {
		t.Errorf("got %v, want both broken files named", err)
	}
}

func TestNextVersion(t *testing.T) {
	tests := []struct{ changelog, want string }{
		{"# Changelog\n\n## [Unreleased] - v0.1.0\n\n- x\n", "v0.1.0"},
		{"## [Unreleased] - v1.2.3\r\n\r\n## v1.2.2 - 2026-01-01\r\n", "v1.2.3"},
		{"## [Unreleased] - v1.2.3-rc.1\n", "v1.2.3-rc.1"},
		{"## [Unreleased]\n", ""},
		{"## [Unreleased] - 1.2.3\n", ""},
		{"## [Unreleased] - v1.2\n", ""},
		{"## [Unreleased] - v0.1.0\n## [Unreleased] - v0.2.0\n", ""},
		{"## v1.2.3 - 2026-01-31\n\n- x\n\n## v1.2.2 - 2026-01-01\n", "v1.2.3"},
		{"## v1.2.3 - 2026-01-31\n## [Unreleased] - v1.2.2\n", ""},
		{"## [Unreleased] - v1.2.3\n## v1.2.3 - 2026-01-01\n", ""},
		{"## [Unreleased] - v1.2.3\n## 1.2.2 (yesterday)\n", ""},
		{"## [Unreleased] - v1.2.3+build\n", ""},
		{"# Changelog\n", ""},
	}
	for _, test := range tests {
		got, err := (&Tree{texts: map[string][]byte{"CHANGELOG.md": []byte(test.changelog)}}).NextVersion()
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: got %q, %v; want %q", test.changelog, got, err, test.want)
		}
	}
}

func TestChangelog(t *testing.T) {
	got, err := Changelog([]byte(
		"# Changelog\n\nAll.\n\n## [Unreleased] - v0.3.0\n\n## v0.2.0 - 2026-02-01\r\n\r\n- b\r\n  c\r\n\r\n### More\r\n\n## v0.1.0 - 2026-01-31\n- a",
	))
	want := []Section{
		{Version: "v0.3.0"},
		{Version: "v0.2.0", Date: "2026-02-01", Text: "- b\n  c\n\n### More"},
		{Version: "v0.1.0", Date: "2026-01-31", Text: "- a"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

func TestRoot(t *testing.T) {
	top := t.TempDir()
	deep := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
	if root, err := Root(); err == nil {
		t.Errorf("got %s outside a repository", root)
	}
	if err := os.WriteFile(filepath.Join(top, "go.work"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(top)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(got, want) || !strings.HasPrefix(root, deep) {
		t.Errorf("got %s, want %s by way of %s", root, top, deep)
	}
}
