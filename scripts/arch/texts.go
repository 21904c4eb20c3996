package arch

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
	"github.com/ephemeralgo/ephemeral/scripts/internal/snippet"
)

// readmeLength checks that no README is longer than its kind allows, or too short to say
// what, when and how. Rule "files" checks that each module has one.
func readmeLength(t *repo.Tree, report reporter) {
	limits := map[string]int{"README.md": policy.RootReadmeLines}
	for _, m := range t.Modules {
		limits[m.Dir+"/README.md"] = policy.KindOf(m.Dir).ReadmeLines
	}
	for name, limit := range limits {
		if n := bytes.Count(t.Text(name), []byte("\n")); n > limit {
			report(name, fmt.Sprintf("is %d lines long, %d are allowed", n, limit), "shorten it, or move parts of it into doc.go")
		} else if name != "README.md" && n < policy.MinReadmeLines && limit <= 80 && len(t.Text(name)) > 0 {
			report(name, fmt.Sprintf("is %d lines long, too short for what a user looks for", n), "say what it is, when to use something else, show the example, options and signals, and what closing does and costs")
		}
	}
}

// snippets checks that every Go block of a README names a compiled example. The test of
// scripts/readme compares them.
func snippets(t *repo.Tree, report reporter) {
	for _, name := range t.Files {
		if path.Base(name) != "README.md" {
			continue
		}
		for _, b := range snippet.Blocks(t.Text(name)) {
			if b.Example == "" {
				report(fmt.Sprintf("%s:%d", name, b.Line), "a Go block that is not a compiled example",
					"put a line like <!-- example: core.ExampleNewCoordinator --> directly before it; then go run ./scripts/readme")
			}
		}
	}
}

// modulesPage checks that docs/modules.md has a row for every published module, and that the
// front page is short.
func modulesPage(t *repo.Tree, report reporter) {
	const page = "docs/modules.md"
	for _, m := range policy.Published(t) {
		row := regexp.MustCompile(`(?m)^ *\|.*\]\(\.\./` + regexp.QuoteMeta(m.Dir) + `/?(README\.md)?\)`)
		if !row.Match(t.Text(page)) {
			do := fmt.Sprintf("add a row like: | [%s](../%s) | use it if you want | use something else if |", path.Base(m.Dir), m.Dir)
			report(page, "no row of a table links "+m.Dir, do)
		}
	}
	if n := len(bytes.Fields(t.Text("README.md"))); n > policy.RootReadmeWords {
		report("README.md", fmt.Sprintf("has %d words, %d are allowed", n, policy.RootReadmeWords), "move something to docs/modules.md or to the guide")
	}
}

// private matches the hosts of package registries, and absolute paths that exist only on
// one machine, in lower case. The patterns do not match themselves. Texts without one of
// the stems have no match, and are searched quickly.
var (
	private = regexp.MustCompile(`\b(?:proxy|sum|index)[.]golang[.]org\b` +
		`|\bgoproxy[.](?:io|cn)\b` +
		`|\b(?:registry[.]npmjs|deb[.]debian|security[.]debian|archive[.]ubuntu)[.]\w+` +
		`|(?:^|[^\w./~*-])/+(?:work|root|home|users)/`)
	privateStems = []string{".golang.", "goproxy.", "npmjs.", "debian.", "ubuntu.", "work/", "root/", "home/", "users/"}
)

// privatePlaces checks that no text of the repository matches private.
func privatePlaces(t *repo.Tree, report reporter) {
	for _, name := range t.Files {
		text := strings.ToLower(string(t.Text(name)))
		stem := func(s string) bool { return strings.Contains(text, s) }
		if strings.Contains(text, "\x00") || !slices.ContainsFunc(privateStems, stem) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if found := private.FindString(line); found != "" {
				where := fmt.Sprintf("%s:%d", name, i+1)
				report(where, fmt.Sprintf("names %q", found), "leave the place to the user's settings, or make the path relative")
			}
		}
	}
}

// link matches a link in Markdown to a file of the repository.
var link = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)

// links checks that links in Markdown lead to files that exist.
func links(t *repo.Tree, report reporter) {
	there := map[string]bool{".": true}
	for _, name := range t.Files {
		for ; name != "."; name = path.Dir(name) {
			there[name] = true
		}
	}
	for _, name := range t.Files {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, found := range link.FindAllStringSubmatch(prose(string(t.Text(name))), -1) {
			if to := path.Join(path.Dir(name), found[1]); !there[to] {
				report(name, "links "+to+", which does not exist", "correct the link")
			}
		}
	}
}
