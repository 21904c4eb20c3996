package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
)

func TestUpdate(t *testing.T) {
	root := t.TempDir()
	err := os.CopyFS(root, fstest.MapFS{
		"go.work":              {Data: []byte("go 1.26\n")},
		"core/go.mod":          {Data: []byte("module core\n")},
		"core/example_test.go": {Data: []byte("package core_test\n\nfunc Example() {\n\tnew()\n}\n")},
		"core/README.md":       {Data: []byte("<!-- example: core.Example -->\n```go\nold()\n```\n")},
		"README.md":            {Data: []byte("nothing to do\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"core/README.md\n", ""} {
		var out strings.Builder
		if err := command.Update(root, &out, plan); err != nil || out.String() != want {
			t.Errorf("printed %q, %v; want %q", out.String(), err, want)
		}
	}
	got, err := os.ReadFile(filepath.Join(root, "core", "README.md"))
	if err != nil || !strings.Contains(string(got), "\nnew()\n") {
		t.Errorf("got %q, %v", got, err)
	}
}
