package guide_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each example is on a page, and the text below it says what it prints. Command readme keeps
// the code equal, and not the text.
func TestPages(t *testing.T) {
	var pages []string
	for _, name := range glob(t, "../../docs/guide/*.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, string(text))
	}
	var files []*ast.File
	for _, name := range glob(t, "*_test.go") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	for _, example := range doc.Examples(files...) {
		_, below, found := strings.Cut(strings.Join(pages, "\n## "), "<!-- example: bench/guide.Example"+example.Name+" -->")
		if !found {
			t.Errorf("Example%s is on no page", example.Name)
		}
		below, _, _ = strings.Cut(below, "\n## ")
		_, below, _ = strings.Cut(below, "\n```\n")
		for line := range strings.Lines(example.Output) {
			if line = strings.TrimSpace(line); !strings.Contains(below, line) {
				t.Errorf("the text below Example%s does not say that it prints %q", example.Name, line)
			}
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatal(pattern, err)
	}
	return names
}
