// Package policy holds the rules of the house as data: what kinds of modules there
// are, what each may use, and what each has to bring along.
//
// It is a statement of policy. Do not change it to get a build green: change it
// when the policy has changed, with the reason beside it and an entry in docs/adr.
package policy

import (
	"path"
	"slices"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// GoVersion is what the go directive of every go.mod and of go.work says. With
// ".0" behind it, it is the first release of the same version; a module says that
// if a library it requires does.
const GoVersion = "1.26"

// Testify may be used by the tests of atoms and patterns.
const Testify = "github.com/stretchr/testify"

// RootReadmeLines is how long README.md of the repository may be.
const RootReadmeLines = 300

// Kind is a group of modules that share their rules.
type Kind struct {
	Pattern     string   // of the module's directory, as in [path.Match]
	Published   bool     // gets a tag with every release
	Uses        []string // patterns of the directories of modules it may import and require
	Needs       []string // directories of modules that it must require
	Testify     bool     // may use [Testify] in tests
	AnyLibrary  bool     // may import any library; the others need a line in [Libraries]
	Commands    bool     // may hold packages main
	Files       []string // file patterns it must have; NAME is the last element of its directory
	ReadmeLines int      // how long its README.md may be
	Reason      string
}

var published = []string{"core", "atoms/*", "atoms/data/*", "patterns/*"}

// Kinds lists every kind of module; the first whose pattern matches counts.
var Kinds = []Kind{
	{
		Pattern:     "core",
		Published:   true,
		Files:       []string{"doc.go", "example*_test.go", "README.md", "go.mod"},
		ReadmeLines: 200,
		Reason:      "everybody depends on core, so core depends on nothing: who takes it takes no other code",
	},
	{
		Pattern:     "atoms/*",
		Published:   true,
		Uses:        []string{"core"},
		Needs:       []string{"core"},
		Testify:     true,
		Files:       []string{"doc.go", "NAME.go", "NAME_test.go", "example_test.go", "README.md", "go.mod"},
		ReadmeLines: 80,
		Reason:      "who takes one atom takes core and that atom; atoms meet through signals, not through imports",
	},
	{
		Pattern:     "atoms/data/*",
		Published:   true,
		Uses:        []string{"core", "atoms/data"},
		Needs:       []string{"core", "atoms/data"},
		Testify:     true,
		Files:       []string{"doc.go", "NAME.go", "NAME_test.go", "example_test.go", "README.md", "go.mod"},
		ReadmeLines: 80,
		Reason:      "a store implements the contract in atoms/data; a module of its own keeps its driver out of all the others",
	},
	{
		Pattern:     "patterns/*",
		Published:   true,
		Uses:        []string{"core"},
		Needs:       []string{"core"},
		Testify:     true,
		Files:       []string{"doc.go", "NAME.go", "NAME_test.go", "example_test.go", "README.md", "go.mod"},
		ReadmeLines: 80,
		Reason:      "a pattern shows how to compose core; if it needs an atom it is a scenario, and belongs into demo",
	},
	{
		Pattern:     "complete",
		Published:   true,
		Uses:        published,
		Needs:       []string{"core"},
		Files:       []string{"doc.go", "example*_test.go", "README.md", "go.mod"},
		ReadmeLines: 120,
		Reason:      "complete re-exports every published module and has no logic of its own",
	},
	{
		Pattern:     "demo",
		Uses:        published,
		AnyLibrary:  true,
		Commands:    true,
		Files:       []string{"README.md", "go.mod"},
		ReadmeLines: 120,
		Reason:      "scenarios put everything together as a user would, from the small modules; nobody imports them",
	},
	{
		Pattern:     "bench",
		Uses:        published,
		AnyLibrary:  true,
		Commands:    true,
		Files:       []string{"README.md", "go.mod"},
		ReadmeLines: 200,
		Reason:      "benchmarks stand beside other libraries, which nobody else should have to download",
	},
	{
		Pattern:     "scripts",
		Uses:        published,
		AnyLibrary:  true,
		Commands:    true,
		Files:       []string{"README.md", "go.mod"},
		ReadmeLines: 80,
		Reason:      "programs of the maintainers; nobody imports them",
	},
}

// Library is an exception: the library a published module exists for.
type Library struct {
	Module string // directory
	Path   string // module path of the library
	Reason string
}

// Libraries lists all exceptions from "an atom requires core and nothing else".
var Libraries = []Library{
	{
		Module: "atoms/data/sqlite",
		Path:   "modernc.org/sqlite",
		Reason: "SQLite itself, without cgo, so that cross-compiling stays one command",
	},
	{
		Module: "atoms/data/postgres",
		Path:   "github.com/jackc/pgx/v5",
		Reason: "the PostgreSQL driver",
	},
}

// KindOf returns the kind of the module in dir; nil if the house has no place for it.
func KindOf(dir string) *Kind {
	for i := range Kinds {
		if matches(Kinds[i].Pattern, dir) {
			return &Kinds[i]
		}
	}
	return nil
}

// MayUse reports whether modules of this kind may import and require the module in dir.
func (k *Kind) MayUse(dir string) bool {
	return slices.ContainsFunc(k.Uses, func(pattern string) bool { return matches(pattern, dir) })
}

// LibrariesOf returns the paths of the libraries that the module in dir may use.
func LibrariesOf(dir string) []string {
	var paths []string
	for _, l := range Libraries {
		if l.Module == dir {
			paths = append(paths, l.Path)
		}
	}
	return paths
}

// Published returns the modules of the tree that get a tag with every release,
// sorted by directory.
func Published(t *repo.Tree) []*repo.Module {
	var ms []*repo.Module
	for _, m := range t.Modules {
		if k := KindOf(m.Dir); k != nil && k.Published {
			ms = append(ms, m)
		}
	}
	return ms
}

// matches is [path.Match] for the patterns of this package, which are well-formed.
func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}
