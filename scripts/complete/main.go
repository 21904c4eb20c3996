// Command complete writes the module complete. Its main package shows every exported name
// of every published module. For each library that modules link, there is one more package:
//
//	go run ./scripts/complete
//
// It writes one file for each package, and the requirements in go.mod. It removes files of
// packages that are gone, and prints the files it has changed. The tests fail if it has to
// be run. It keeps the requirements of libraries that "go mod tidy" has added.
//
// It reads syntax, not types, and the compiler checks what comes out. Names of core stay. Elsewhere, the
// type that New returns is the main type, and a name without it gets it as a prefix, after New and Err.
// names.go has what the rule cannot know. A program that imports package complete must not link a driver,
// so packages that link a library go into packages of their own (policy.Separate). Rejected: variables for
// functions, because generic functions have none. Build tags: tools would need flags. A module for each
// driver: one go get would not bring all.
package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// dir is the directory of the module.
const dir = "complete"

func main() {
	command.Main("complete", nil, func(_ context.Context, root string) error { return command.Update(root, os.Stdout, plan) })
}

// plan returns the files that have to change, with their new text. The text is nil if an
// earlier run wrote the file and it is no longer needed.
func plan(tree *repo.Tree) (map[string][]byte, error) {
	packages, err := exports(tree)
	if err != nil {
		return nil, err
	}
	if err := settle(packages); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, p := range packages {
		if files[p.file()], err = render(p); err != nil {
			return nil, err
		}
	}
	if files[dir+"/go.mod"], err = goMod(tree); err != nil {
		return nil, err
	}
	for _, name := range tree.Files {
		switch is, should := tree.Text(name), files[name]; {
		case should != nil && bytes.Equal(is, should):
			delete(files, name)
		case should == nil && strings.HasPrefix(name, dir+"/") && bytes.HasPrefix(is, []byte(head)):
			files[name] = nil
		}
	}
	return files, nil
}

// goMod returns go.mod with a requirement and a replacement for every published module. It
// keeps requirements of libraries.
func goMod(tree *repo.Tree) ([]byte, error) {
	name := dir + "/go.mod"
	mod, err := modfile.Parse(name, tree.Text(name), nil)
	if err != nil {
		return nil, err
	}
	version, err := tree.NextVersion()
	if err != nil {
		return nil, err
	}
	requires := slices.DeleteFunc(slices.Clone(mod.Require), func(r *modfile.Require) bool {
		return strings.HasPrefix(r.Mod.Path, repo.Prefix)
	})
	for _, r := range slices.Clone(mod.Replace) {
		if err := mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	mod.Cleanup()
	own := slices.DeleteFunc(policy.Published(tree), func(m *repo.Module) bool { return !policy.KindOf(dir).MayUse(m.Dir) })
	for _, m := range own {
		r := new(modfile.Require)
		r.Mod.Path, r.Mod.Version = m.Path(), version
		requires = append(requires, r)
	}
	mod.SetRequireSeparateIndirect(requires)
	for _, m := range own {
		if err := mod.AddReplace(m.Path(), "", "../"+m.Dir, ""); err != nil {
			return nil, err
		}
	}
	mod.SortBlocks()
	mod.Cleanup()
	return mod.Format()
}
