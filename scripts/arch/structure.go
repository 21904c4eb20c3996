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
)

// workspace compares the use lines of go.work with the directories of modules.
func workspace(t *repo.Tree, report reporter) {
	var used []string
	for _, use := range t.Work.Use {
		dir := path.Clean(use.Path)
		if slices.Contains(used, dir) {
			report("go.work", "use ./"+dir+" stands there twice", "remove one")
		}
		used = append(used, dir)
		if t.Module(dir) == nil {
			report("go.work", "use ./"+dir+", but there is no module", "go work edit -dropuse=./"+dir)
		}
	}
	for _, m := range t.Modules {
		if !slices.Contains(used, m.Dir) {
			report(m.Dir, "a module that go.work does not use", "go work use ./"+m.Dir)
		}
	}
}

// modulePaths checks that each module is in a directory of some kind, and has the path of that directory.
func modulePaths(t *repo.Tree, report reporter) {
	for _, m := range t.Modules {
		if want := repo.Prefix + m.Dir; m.Path() != want {
			report(m.Dir+"/go.mod", "the module calls itself "+m.Path(), "module "+want)
		}
		if policy.KindOf(m.Dir).Pattern == "" {
			report(m.Dir, "there is no kind of module for this directory", "move it, or add a kind with its reason to policy.Kinds")
		}
	}
}

// files checks that each module has the files of its kind.
func files(t *repo.Tree, report reporter) {
	for _, m := range t.Modules {
		kind := policy.KindOf(m.Dir)
		for _, pattern := range kind.Files {
			pattern = m.Dir + "/" + strings.ReplaceAll(pattern, "NAME", path.Base(m.Dir))
			if !slices.ContainsFunc(m.Files, func(name string) bool { return policy.Matches(pattern, name) }) {
				report(m.Dir, "has no "+path.Base(pattern), "write it; CONTRIBUTING.md says what it contains")
			}
		}
	}
}

// packageNames checks that a package has the name of its directory. Commands have the name
// main, and only tools have commands.
func packageNames(t *repo.Tree, report reporter) {
	t.GoFiles(func(m *repo.Module, p *repo.Package, file *repo.GoFile) {
		got, want := file.Package(), path.Base(p.Dir)
		if file.Test() {
			got = strings.TrimSuffix(got, "_test")
		}
		if got != want && (got != "main" || !policy.KindOf(m.Dir).Tool) {
			report(file.Name, fmt.Sprintf("is package %s in directory %s", got, p.Dir), "package "+want)
		}
	})
}

var decision = regexp.MustCompile(`^[0-9]{4}-[a-z0-9]+(-[a-z0-9]+)*\.md$`)

// decisions checks that the records in docs/adr can be cited by number.
func decisions(t *repo.Tree, report reporter) {
	taken := map[string]string{} // by number
	for _, name := range t.Files {
		if path.Dir(name) != "docs/adr" {
			continue
		}
		number, _, _ := strings.Cut(path.Base(name), "-")
		heading := "# " + strings.TrimLeft(number, "0") + ". "
		switch other := taken[number]; {
		case !decision.MatchString(path.Base(name)):
			report(name, "does not have the name of a decision", "docs/adr/NNNN-title-in-lower-case.md")
		case other != "":
			report(name, "has the number of "+other, "give the younger one the next free number")
		case !bytes.HasPrefix(t.Text(name), []byte(heading)):
			report(name, "does not begin with its number", fmt.Sprintf("begin it with %q and the title", heading))
		}
		taken[number] = name
	}
}
