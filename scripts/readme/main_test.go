package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repotest"
)

func TestUpdate(t *testing.T) {
	root := t.TempDir()
	err := os.CopyFS(root, fstest.MapFS{
		"go.work":              {Data: []byte("go 1.26\n")},
		"core/go.mod":          {Data: []byte("module core\n")},
		"core/example_test.go": {Data: []byte("package core_test\n\nfunc Example() {\n\tnew()\n}\n")},
		"core/README.md":       {Data: []byte("<!-- example: core.Example -->\n```go\nold()\n```\n")},
		"README.md":            {Data: []byte("nothing to do\n")},
		"atoms/a/go.mod":       {Data: []byte("module a\n")},
		"atoms/a/a.go": {Data: []byte("package a\n\n// Signals.\nconst (\n\tSignalUp   = \"a.started\"\n\tSignalDown = \"a.lost\" // see [Down]|\n" +
			"\t// SignalBad is raised as SignalBad:name. Not this.\n\tSignalBad, other = \"a.missed\", 1\n\tSignalOf = b.SignalFailed\n)\n")},
		"docs/guide/signals.md": {Data: []byte("<!-- signals -->\n| old |\n\nrest\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"core/README.md\ndocs/guide/signals.md\n", ""} {
		var out strings.Builder
		if err := command.Update(root, &out, plan); err != nil || out.String() != want {
			t.Errorf("printed %q, %v; want %q", out.String(), err, want)
		}
	}
	got, err := os.ReadFile(filepath.Join(root, "core", "README.md"))
	if err != nil || !strings.Contains(string(got), "\nnew()\n") {
		t.Errorf("got %q, %v", got, err)
	}
	got, err = os.ReadFile(filepath.Join(root, "docs", "guide", "signals.md"))
	want := "<!-- signals -->\n| signal | level | module |\n| --- | --- | --- |\n| `a.lost` | error | [a](../../atoms/a) |\n" +
		"| `a.missed` | warn | [a](../../atoms/a) |\n\nrest\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

// Each signal that a person should know has a comment.
func TestSignalsNeedComments(t *testing.T) {
	tree := repotest.Load(t, map[string]string{
		"atoms/a/go.mod": "module a\n",
		"atoms/a/a.go":   "package a\n\nconst SignalDown = \"a.lost\"\n",
	})
	if _, err := plan(tree); err == nil || err.Error() != `atoms/a: the constant "a.lost" needs a comment that says when the signal is raised` {
		t.Errorf("got %v", err)
	}
}

// No file of this repository is stale.
func TestUpToDate(t *testing.T) {
	_, tree := repotest.Here(t)
	changed, err := plan(tree)
	if err != nil {
		t.Fatal(err)
	}
	for name := range changed {
		t.Errorf("%s is stale: go run ./scripts/readme", name)
	}
}
