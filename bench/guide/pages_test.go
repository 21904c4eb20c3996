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

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Each example is on a page, and the text below it contains its output. Command readme copies
// the code, but not the output.
func TestPages(t *testing.T) {
	var pages []string
	dir := core.Must(os.Getwd()) + "/../../docs/guide" // not cleaned: see repo.Root of scripts
	for _, page := range core.Must(os.ReadDir(dir)) {
		pages = append(pages, string(core.Must(os.ReadFile(dir+"/"+page.Name()))))
	}
	var files []*ast.File
	for _, name := range core.Must(filepath.Glob("*_test.go")) {
		files = append(files, core.Must(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)))
	}
	for _, example := range doc.Examples(files...) {
		_, below, found := strings.Cut(strings.Join(pages, "\n## "), "<!-- example: bench/guide.Example"+example.Name+" -->")
		coretest.Check(t, found, "Example%s is on no page", example.Name)
		below, _, _ = strings.Cut(below, "\n## ")
		_, below, _ = strings.Cut(below, "\n```\n")
		for line := range strings.Lines(example.Output) {
			if line = strings.TrimSpace(line); !strings.Contains(below, line) {
				t.Errorf("the text below Example%s does not say that it prints %q", example.Name, line)
			}
		}
	}
}
