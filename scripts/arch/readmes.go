package arch

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
	"github.com/ephemeralgo/ephemeral/scripts/internal/snippet"
)

// readmeLength checks that no README is longer than its kind allows. That each
// module has one is a matter of rule "files".
func readmeLength(t *repo.Tree) []Violation {
	var vs []Violation
	check := func(name string, limit int) {
		data, err := fs.ReadFile(t.FS, name)
		if err != nil {
			return
		}
		if n := bytes.Count(data, []byte("\n")); n > limit {
			vs = append(vs, Violation{name, fmt.Sprintf("is %d lines long, %d are allowed", n, limit), "keep what it is, one example, options, signals and one caveat; the rest belongs into doc.go"})
		}
	}
	check("README.md", policy.RootReadmeLines)
	for _, m := range t.Modules {
		if kind := policy.KindOf(m.Dir); kind != nil {
			check(m.Dir+"/README.md", kind.ReadmeLines)
		}
	}
	return vs
}

// snippets checks that every Go block of a README, and every marked one of any
// other Markdown file, is the body of a compiled example.
func snippets(t *repo.Tree) []Violation {
	var vs []Violation
	for _, name := range t.Files {
		if path.Ext(name) != ".md" {
			continue
		}
		data, err := fs.ReadFile(t.FS, name)
		if err != nil {
			vs = append(vs, Violation{name, err.Error(), "make it readable"})
			continue
		}
		for _, b := range snippet.Blocks(data) {
			where := fmt.Sprintf("%s:%d", name, b.Line)
			if b.Example == "" {
				if path.Base(name) == "README.md" {
					vs = append(vs, Violation{where, "a Go block that no example compiles", "put a line like <!-- example: core.ExampleNewCoordinator --> directly before it, and run: go run ./scripts/readme"})
				}
				continue
			}
			want, err := snippet.Body(t.FS, b.Example)
			if err != nil {
				vs = append(vs, Violation{where, err.Error(), "name an Example function: <!-- example: DIRECTORY.ExampleName -->"})
			} else if b.Text != want {
				vs = append(vs, Violation{where, "differs from " + b.Example, "go run ./scripts/readme"})
			}
		}
	}
	return vs
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// frontPage checks that a table of the root README links every published module.
func frontPage(t *repo.Tree) []Violation {
	data, err := fs.ReadFile(t.FS, "README.md")
	if err != nil {
		return []Violation{{"README.md", err.Error(), "write it, with a table of all published modules"}}
	}
	linked := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "|") {
			continue
		}
		for _, found := range link.FindAllStringSubmatch(line, -1) {
			target := strings.TrimSuffix(strings.TrimPrefix(found[1], "./"), "README.md")
			linked[strings.TrimSuffix(target, "/")] = true
		}
	}
	var vs []Violation
	for _, m := range policy.Published(t) {
		if !linked[m.Dir] {
			vs = append(vs, Violation{"README.md", "no row of a table links " + m.Dir, fmt.Sprintf("add a row like: | [%s](%s) | what it is for |", path.Base(m.Dir), m.Dir)})
		}
	}
	return vs
}
