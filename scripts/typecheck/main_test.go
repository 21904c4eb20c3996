package main

import (
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
)

// A fault in a file, or in a test, that only one system has is found for that system.
func TestCheck(t *testing.T) {
	root := t.TempDir()
	err := command.WriteFiles(root, map[string]string{
		"go.mod":           "module example.com/small\n\ngo 1.26\n",
		"a.go":             "package small\n",
		"a_windows.go":     "package small\n\nvar Bad int = \"text\"\n",
		"b_darwin_test.go": "package small\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { missing() }\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOWORK", "off")
	for system, want := range map[string]string{"windows/amd64": "a_windows.go:3:15", "darwin/arm64": "undefined: missing", "linux/386": "", "plan9": "not GOOS/GOARCH"} {
		err := check(t.Context(), root, system, "./...")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got error %v, want %q", system, err, want)
		}
	}
	if err := check(t.Context(), root, "linux/386", "./none/..."); err == nil {
		t.Error("a pattern that matches nothing was taken")
	}
}
