// Package arch checks that the repository keeps its own rules: which module may import
// which other, what each module contains, what READMEs show, and which words and names
// are used.
//
// Each rule is a function that reports violations in a [repo.Tree], with the reason for
// the rule beside it. Differences between modules are data in package policy. The tests
// of this package apply all rules to the checkout in which they run. They also apply
// every rule to small broken trees, in which it must report a violation.
package arch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// Rule is a rule for the whole repository.
type Rule struct {
	Name, Reason string
	check        func(*repo.Tree, reporter)
}

// A reporter is called with the place of a violation (a file, a line or a directory), the
// fault, and what to do about it.
type reporter func(where, what, do string)

// Violations returns the places where the tree breaks the rule. A violation whose text
// begins with the name of an exception does not count. An exception without a violation is
// a violation itself.
func (r Rule) Violations(t *repo.Tree, exceptions []policy.Exception) []string {
	var vs []string
	needed := map[string]bool{}
	r.check(t, func(where, what, do string) {
		name, _, _ := strings.Cut(what, " ")
		if slices.ContainsFunc(exceptions, func(x policy.Exception) bool { return x.Rule == r.Name && x.Name == name }) {
			needed[name] = true
			return
		}
		vs = append(vs, fmt.Sprintf("%s: %s\n\tdo: %s", where, what, do))
	})
	for _, x := range exceptions {
		if x.Rule == r.Name && !needed[x.Name] {
			vs = append(vs, fmt.Sprintf("%s: is an exception that nothing needs\n\tdo: remove it from policy.Exceptions", x.Name))
		}
	}
	return vs
}

// Rules lists all rules.
var Rules = []Rule{
	{"workspace", "every command and CI take the list of modules from go.work", workspace},
	{"module path", "a reader can tell the path of a module from its directory", modulePaths},
	{"imports", "a user of one small module must not get other modules with it", imports},
	{"libraries", "a library in one module is a library in every program that uses the module", libraries},
	{"internal", "the root package of core is read alone, coretest is for tests, and other modules may have other versions", internals},
	{"requirements", "users download what go.mod requires, even if nothing imports it", requirements},
	{"replacements", "each module builds alone in a checkout, with the other modules of that checkout", replacements},
	{"go directive", "there is one language version, and the user chooses the toolchain", goDirective},
	{"versions", "all modules are released together, at the version in the heading of CHANGELOG.md", versions},
	{"files", "a reader who knows one module finds everything in the next one", files},
	{"package names", "readers expect that a package is called like the end of its path", packageNames},
	{"readme length", "the README of a small module fits on one screen", readmeLength},
	{"readme snippets", "code in a README that is not compiled is soon wrong", snippets},
	{"modules page", "users find all modules on one page, and the front page is read in a minute", modulesPage},
	{"private places", "the project builds on any machine, and names no place on the machine of its authors", privatePlaces},
	{"words", "readers are engineers in a hurry, and English is their second language", words},
	{"options", "an option has one name and one place where it is checked", options},
	{"links", "a link that leads nowhere costs a reader time", links},
	{"signal names", "users write patterns that match signals: a signal says what has happened, or what state something is in", signalNames},
	{"one name", "a gate, a pattern or a kind for the signals of one package must not get those of another", oneName},
	{"errors", "a user who finds an error in a log must know which package it comes from", errorTexts},
	{"guarded", "a method of a user's error may panic, block or call back: where it is called directly, a panic skips what follows", guarded},
	{"examples", "users look for an example of each type before they read its documentation", examples},
}
