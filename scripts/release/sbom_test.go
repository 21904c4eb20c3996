package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
)

// A bill of materials lists what is linked on any system, and which module needs it. It does not list
// libraries that only tests import.
func TestBOM(t *testing.T) {
	c := newClone(t)
	library := func(dir string) string {
		return "\nrequire example.com/" + dir + " v1.2.3\n\nreplace example.com/" + dir + " => ../" + dir + "\n"
	}
	mod, err := os.ReadFile(filepath.Join(c.root, "complete", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if err := command.WriteFiles(c.root, map[string]string{
		"complete/go.mod":           string(mod) + library("window") + library("tester"),
		"complete/lib_windows.go":   "package complete\n\nimport _ \"example.com/window\"\n",
		"complete/complete_test.go": "package complete\n\nimport _ \"example.com/tester\"\n",
		"window/go.mod":             "module example.com/window\n\ngo 1.26\n",
		"window/window.go":          "package window\n",
		"tester/go.mod":             "module example.com/tester\n\ngo 1.26\n",
		"tester/tester.go":          "package tester\n",
	}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := run(t.Context(), c.root, options{sbom: dir}, t.Output()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"core":     "core; core>",
		"complete": "complete example.com/window core; example.com/window> complete>example.com/window,core core>",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var b bom
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
		for _, c := range append(b.Components, b.Metadata.Component) {
			if ours := strings.HasPrefix(c.Name, prefix); ours != slices.Equal(c.Licenses, []license{{policy.License}}) {
				t.Errorf("%s: licenses %v of %s", name, c.Licenses, c.Name)
			}
		}
		got := b.Metadata.Component.Name
		for _, c := range b.Components {
			got += " " + c.Name
		}
		got += ";"
		for _, d := range b.Dependencies {
			got += " " + d.Ref + ">" + strings.Join(d.On, ",")
		}
		got = strings.NewReplacer("pkg:golang/", "", prefix, "", "@v0.1.0", "", "@v1.2.3", "").Replace(got)
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}
