package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
)

// written writes the files, with a go.mod for each of the modules, and returns their root.
func written(t *testing.T, modules []string, files map[string]string) string {
	t.Helper()
	work := "go 1.26\n\n"
	for _, dir := range modules {
		work += "use ./" + dir + "\n"
		files[dir+"/go.mod"] = "module " + prefix + dir + "\n\ngo 1.26\n"
	}
	files["go.work"] = work
	root := t.TempDir()
	if err := command.WriteFiles(root, files); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestIncompatible(t *testing.T) {
	const imports = "import \"" + prefix + "core\"\n\n"
	before := written(t, []string{"core", "atoms/data", "atoms/data/file", "atoms/old", "complete", "demo"}, map[string]string{
		"core/core.go":            "package core\n\ntype Sink[T any] struct{ n int }\n\nfunc (*Sink[T]) Raise(T) {}\n\ntype Raiser interface{ Raise(int) }\n\nconst Max = 1\n",
		"core/lru/lru.go":         "package lru\n",
		"core/internal/in/in.go":  "package in\n\nfunc Gone() {}\n",
		"atoms/data/data.go":      "package data\n\n" + imports + "func Sink() *core.Sink[int] { return nil }\n",
		"atoms/data/file/file.go": "package file\n\nfunc Open(name string) {}\n",
		"atoms/old/old.go":        "package old\n",
		"complete/complete.go":    "package complete\n\n" + imports + "type Sink[T any] = core.Sink[T]\n\ntype Raiser = core.Raiser\n",
		"demo/demo.go":            "package demo\n\nfunc Gone() {}\n",
	})
	after := written(t, []string{"core", "atoms/data", "atoms/data/file", "atoms/new", "complete", "demo"}, map[string]string{
		"core/core.go":            "package core\n\ntype Sink[T any] struct{ n, m int }\n\nfunc (*Sink[T]) Raise(T) {}\n\nfunc (*Sink[T]) Close() {}\n\ntype Raiser interface{ Raise(int); Close() }\n\nconst Max = 2\n",
		"core/internal/in/in.go":  "package in\n",
		"atoms/data/data.go":      "package data\n\n" + imports + "func Sink() *core.Sink[int] { return nil }\n",
		"atoms/data/file/file.go": "package file\n\nfunc Open(name string, flags ...int) {}\n",
		"atoms/new/new.go":        "package new\n",
		"complete/complete.go":    "package complete\n\n" + imports + "type Sink[T any] = core.Sink[T]\n",
		"demo/demo.go":            "package demo\n",
	})
	want := []string{
		"atoms/data/file: Open: changed from func(string) to func(string, ...int)",
		"atoms/old: module removed",
		"complete: Raiser: removed",
		"core: Max: value changed from 1 to 2",
		"core: Raiser.Close: added",
		"core: package core/lru: removed",
	}
	if got, err := incompatible(t.Context(), before, after); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, err := incompatible(t.Context(), after, after); err != nil || len(got) > 0 {
		t.Errorf("of a tree and itself: %v, %q", err, got)
	}

	broken := written(t, []string{"core"}, map[string]string{"core/core.go": "package core\n\nvar x int = \"\"\n"})
	if _, err := incompatible(t.Context(), before, broken); err == nil || !strings.Contains(err.Error(), "core.go:3") {
		t.Errorf("of a broken tree: %v", err)
	}
}
