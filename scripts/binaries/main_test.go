package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
)

// small is a checkout whose demo prints the path of its source, if the program contains it.
func small(t *testing.T) string {
	command.Long(t)
	root := t.TempDir()
	err := command.WriteFiles(root, map[string]string{
		"go.mod":       "module example.com/small\n\ngo 1.26\n",
		"demo/main.go": "package main\n\nimport \"runtime\"\n\nfunc main() { _, file, _, _ := runtime.Caller(0); println(file) }\n",
		".git/config":  "private",
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestRelease(t *testing.T) {
	root, dir := small(t), t.TempDir()
	t.Setenv("GOWORK", "off")
	platforms := []string{"linux/arm64", "windows/amd64"}
	var out strings.Builder
	if err := release(t.Context(), root, platforms, dir, &out); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(sums), "\n"); got != len(platforms) {
		t.Errorf("got %d sums, want %d:\n%s", got, len(platforms), sums)
	}
	for _, platform := range platforms {
		name := "ephemeral-demo-" + strings.ReplaceAll(platform, "/", "-")
		text, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			text, err = os.ReadFile(filepath.Join(dir, name+".exe"))
		}
		switch {
		case err != nil:
			t.Error(err)
		case strings.Contains(string(text), root):
			t.Errorf("%s contains the path of its checkout", name)
		}
		if !strings.Contains(out.String(), name) {
			t.Errorf("the table does not name %s:\n%s", name, out.String())
		}
	}
}

func TestReproduce(t *testing.T) {
	root := small(t)
	t.Setenv("GOWORK", "off")
	var out strings.Builder
	if err := reproduce(t.Context(), root, []string{"windows/amd64"}, &out); err != nil || out.Len() == 0 {
		t.Errorf("got %v, %q", err, out.String())
	}
	if err := reproduce(context.Background(), root, []string{"windows"}, &out); err == nil {
		t.Error("a system without processor was taken")
	}
}
