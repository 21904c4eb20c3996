package arch

import (
	"fmt"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// Rule is one thing that holds for the whole repository.
type Rule struct {
	Name   string
	Reason string
	Check  func(*repo.Tree) []Violation
}

// Violation is a place where a rule does not hold.
type Violation struct {
	Where string // a file or directory
	What  string // is wrong
	Do    string // to put it right
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n\tdo: %s", v.Where, v.What, v.Do)
}

// Rules lists all rules.
var Rules = []Rule{
	{
		"workspace",
		"go.work is the list of modules from which every command and CI derive theirs",
		workspace,
	},
	{
		"module path",
		"a path that follows from the directory is one nobody has to look up",
		modulePaths,
	},
	{
		"imports",
		"who takes one small module must not get others with it",
		imports,
	},
	{
		"libraries",
		"a library in one module is a library in every program that uses it",
		libraries,
	},
	{
		"core",
		"the small packages of core are built on its heart, so the heart stays readable without them",
		coreHeart,
	},
	{
		"test helpers",
		"helpers for tests must not be linked into anybody's program",
		testHelpers,
	},
	{
		"internal",
		"modules are chosen one by one, so an internal package of another may be of another version",
		internals,
	},
	{
		"requirements",
		"what go.mod requires is what a user downloads, whatever is imported",
		requirements,
	},
	{
		"replacements",
		"each module builds alone from a checkout, and only the repository's own modules are taken from it",
		replacements,
	},
	{
		"go directive",
		"one language version everywhere, and the toolchain is the user's choice",
		goDirective,
	},
	{
		"versions",
		"all modules are released together, at the version in the heading of CHANGELOG.md",
		versions,
	},
	{
		"files",
		"who has seen one module finds everything in the next",
		files,
	},
	{
		"package names",
		"a package whose name differs from its path makes every importer look twice",
		packageNames,
	},
	{
		"readme length",
		"the README of a small module is read on one screen",
		readmeLength,
	},
	{
		"readme snippets",
		"code in a README that nobody compiles is wrong within a month",
		snippets,
	},
	{
		"readme table",
		"a module that the front page does not name is not found",
		frontPage,
	},
	{
		"decisions",
		"a decision that two pages claim the number of cannot be cited",
		decisions,
	},
	{
		"private places",
		"the project must build on any machine, and say nothing about the one it was written on",
		privatePlaces,
	},
}
