package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

func TestReplace(t *testing.T) {
	tests := []struct{ text, want string }{
		{"a.org/b", "x.dev/y/z"},
		{"a.org/b/core", "x.dev/y/z/core"},
		{"see a.org/b. See (a.org/b), a.org/b...", "see x.dev/y/z. See (x.dev/y/z), x.dev/y/z..."},
		{"https://a.org/b/tree/main https://a.org/b.git", "https://x.dev/y/z/tree/main https://x.dev/y/z.git"},
		{`"\ta.org/b\n" "\\ta.org/b"`, `"\tx.dev/y/z\n" "\\tx.dev/y/z"`},
		{"a.org/bb a.org/b-c a.org/b.c a.org/b_c a.org/b.github", "a.org/bb a.org/b-c a.org/b.c a.org/b_c a.org/b.github"},
		{"aa.org/b -a.org/b .a.org/b", "aa.org/b -a.org/b .a.org/b"},
		{"a.org/ba.org/b a.org/b", "a.org/ba.org/b x.dev/y/z"},
	}
	for _, test := range tests {
		if got := string(replace([]byte(test.text), "a.org/b", "x.dev/y/z")); got != test.want {
			t.Errorf("%q becomes %q, want %q", test.text, got, test.want)
		}
	}
}

func TestRewrite(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{
			"imports are sorted and comments aligned again", "package p // see [a.org/b/core.Sink]\n\nimport (\n\t_ \"a.org/b/core\"\n\t_ \"m.org/lib\"\n)\n\nvar (\n\tx = `a.org/b` // one\n\ty = 'b'       // two\n)\n",
			"package p // see [x.dev/y/z/core.Sink]\n\nimport (\n\t_ \"m.org/lib\"\n\t_ \"x.dev/y/z/core\"\n)\n\nvar (\n\tx = `x.dev/y/z` // one\n\ty = 'b'         // two\n)\n",
		},
		{"what cannot be parsed is no hindrance", "\"a.org/b\" {", "\"x.dev/y/z\" {"},
	}
	for _, test := range tests {
		got, err := rewrite("p/p.go", []byte(test.text), "a.org/b", "x.dev/y/z")
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got\n%s, %v\nwant\n%s", test.name, got, err, test.want)
		}
	}

	mod := "module a.org/b/p\n\nrequire (\n\ta.org/b/core v0.1.0\n\tm.org/lib v1.0.0 // indirect\n)\n\nreplace a.org/b/core => ../core\n"
	want := "module x.dev/y/z/p\n\nrequire (\n\tm.org/lib v1.0.0 // indirect\n\tx.dev/y/z/core v0.1.0\n)\n\nreplace x.dev/y/z/core => ../core\n"
	if got, err := rewrite("p/go.mod", []byte(mod), "a.org/b", "x.dev/y/z"); err != nil || string(got) != want {
		t.Errorf("got\n%s, %v\nwant\n%s", got, err, want)
	}
	for _, binary := range []string{"\x00a.org/b", "\xffa.org/b"} {
		if got, err := rewrite("p/p.bin", []byte(binary), "a.org/b", "x.dev/y/z"); err != nil || string(got) != binary {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestValid(t *testing.T) {
	for prefix, want := range map[string]bool{
		"example.com/ephemeral":     true,
		"example.com/Our/ephemeral": true,
		"example.com":               true,
		"":                          false,
		"ephemeral":                 false,
		"Example.com/ephemeral":     false,
		"example.com/ephemeral/":    false,
		"example.com/ephemeral/v2":  false,
		"https://example.com/e":     false,
		"example.com/our ephemeral": false,
		"example.com/../ephemeral":  false,
	} {
		if err := valid(prefix); (err == nil) != want {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func TestRun(t *testing.T) {
	root := t.TempDir()
	err := os.CopyFS(root, fstest.MapFS{
		"go.work":      {Data: []byte("go 1.26\n\nuse ./core\n")},
		"core/go.mod":  {Data: []byte("module a.org/b/core\n")},
		"core/core.go": {Data: []byte("// Package core is at https://a.org/b.\npackage core\n")},
		".ci/run":      {Data: []byte("go test a.org/b/core\n"), Mode: 0o755},
		"README.md":    {Data: []byte("nothing to do\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com",
			"-c", "maintenance.auto=false", "-c", "gc.auto=0", // git must not work in the background while the directory is removed
		}, args...)
		if _, err := command.Output(t.Context(), root, nil, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	rename := func(to string, force bool) string {
		t.Helper()
		var out strings.Builder
		if err := run(t.Context(), root, to, force, &out); err != nil {
			return err.Error()
		}
		return out.String()
	}
	if got := rename("x.dev/y", false); !strings.Contains(got, "commit them, or rename with -f") {
		t.Errorf("in a dirty tree: %s", got)
	}
	git("add", "--all")
	git("commit", "--quiet", "--message=Work")
	if got := rename("x.dev/", false); !strings.Contains(got, "malformed module path") {
		t.Errorf("to no path: %s", got)
	}
	const files = ".ci/run\ncore/core.go\ncore/go.mod\n\nThe modules are called "
	for _, to := range []string{"x.dev/y", "x.dev/y/z", "a.org/b"} { // each begins with the previous one
		if got := rename(to, true); !strings.HasPrefix(got, files) {
			t.Errorf("to %s: %s", to, got)
		}
		if got := rename(to, true); !strings.HasPrefix(got, "\nThe modules are called "+to) {
			t.Errorf("to %s again: %s", to, got)
		}
	}
	git("diff", "--exit-code")
}

// TestRepository renames a copy of the checkout. The go command then finds all packages; in
// the long form, it builds and tests some.
func TestRepository(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{}
	for _, name := range tree.Files {
		texts[name] = tree.Text(name)
	}
	dir := t.TempDir()
	if err := command.WriteFiles(dir, texts); err != nil {
		t.Fatal(err)
	}
	const to = "zoo.example.com/Our/ephemeral"
	if err := run(t.Context(), dir, to, true, io.Discard); err != nil {
		t.Fatal(err)
	}
	renamed, err := repo.Load(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range renamed.Modules {
		if want := to + "/" + m.Dir; m.Path() != want {
			t.Errorf("module %s, want %s", m.Path(), want)
		}
	}
	for _, name := range renamed.Files {
		if bytes.Contains(renamed.Text(name), []byte(repo.Prefix)) {
			t.Errorf("%s has the old path", name)
		}
	}

	commands := [][]string{{"go", "list", "-deps", "-test", "work"}}
	if os.Getenv("EPHEMERAL_REHEARSAL") != "" {
		commands = append(commands,
			[]string{"gofmt", "-l", "."},
			[]string{"go", "vet", to + "/core", to + "/atoms/fixedwork", to + "/scripts/..."},
			[]string{"go", "test", "-short", to + "/core/lru", to + "/core/graph", to + "/core/quorum", to + "/atoms/fixedwork"})
	}
	// -trimpath lets the build cache serve the directories of all runs.
	env := append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "GOFLAGS=-trimpath", "EPHEMERAL_REHEARSAL=")
	for _, args := range commands {
		out, err := command.Output(t.Context(), dir, env, args[0], args[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		if args[0] == "gofmt" && len(out) > 0 {
			t.Errorf("gofmt would change\n%s", out)
		}
	}
}
