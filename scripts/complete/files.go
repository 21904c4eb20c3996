package main

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// goMod returns go.mod with a requirement and a replacement for every published
// module. What else it requires stays.
func goMod(tree *repo.Tree) ([]byte, error) {
	name := dir + "/go.mod"
	data, err := fs.ReadFile(tree.FS, name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	version, err := repo.NextVersion(tree.FS)
	if err != nil {
		return nil, err
	}
	var requires []*modfile.Require
	for _, r := range slices.Clone(mod.Require) {
		if !strings.HasPrefix(r.Mod.Path, repo.Prefix) {
			requires = append(requires, &modfile.Require{Mod: r.Mod, Indirect: r.Indirect})
		}
		if err := mod.DropRequire(r.Mod.Path); err != nil {
			return nil, err
		}
	}
	for _, r := range slices.Clone(mod.Replace) {
		if err := mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	mod.Cleanup()
	var own []*repo.Module
	for _, m := range policy.Published(tree) {
		if m.Dir != dir {
			own = append(own, m)
			r := new(modfile.Require)
			r.Mod.Path, r.Mod.Version = m.Path(), version
			requires = append(requires, r)
		}
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

// compare returns the files that are not as they should be, and those that the
// program once wrote and would not write any more.
func compare(tree *repo.Tree, want map[string][]byte) ([]change, error) {
	var changes []change
	for _, name := range tree.Files {
		if path.Dir(name) != dir {
			continue
		}
		content, err := fs.ReadFile(tree.FS, name)
		if err != nil {
			return nil, err
		}
		should, wanted := want[name]
		switch {
		case !wanted && bytes.HasPrefix(content, []byte(head)):
			changes = append(changes, change{name: name, was: content})
		case wanted && !bytes.Equal(content, should):
			changes = append(changes, change{name, content, should})
		}
		delete(want, name)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		changes = append(changes, change{name, nil, want[name]})
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.name, b.name) })
	return changes, nil
}

// declaration is the beginning of one in a file that the program writes.
var declaration = regexp.MustCompile(`(?m)^(?:const|var|type|func) (\w+)`)

// String says what is wrong with the file: which names it lacks, and which it has that
// are gone.
func (c change) String() string {
	was, should := declared(c.was), declared(c.content)
	var missing, stale []string
	for name := range should {
		if !was[name] {
			missing = append(missing, name)
		}
	}
	for name := range was {
		if !should[name] {
			stale = append(stale, name)
		}
	}
	slices.Sort(missing)
	slices.Sort(stale)
	text := c.name + " is not up to date"
	if len(missing) > 0 {
		text += ", it lacks " + strings.Join(missing, ", ")
	}
	if len(stale) > 0 {
		text += ", it still has " + strings.Join(stale, ", ")
	}
	return text
}

func declared(file []byte) map[string]bool {
	names := map[string]bool{}
	for _, m := range declaration.FindAllSubmatch(file, -1) {
		names[string(m[1])] = true
	}
	return names
}
