package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// forbidden returns why a version with these incompatible changes may not follow base, or
// "". Every version may follow a pre-release.
func forbidden(base, version string, breaks []string) string {
	switch {
	case len(breaks) == 0, semver.Major(base) != semver.Major(version):
		return ""
	case semver.Major(version) != "v0":
		return fmt.Sprintf("%d incompatible changes since %s need a new major version: undo them", len(breaks), base)
	case semver.MajorMinor(base) == semver.MajorMinor(version):
		const do = "correct the heading in CHANGELOG.md and the versions in go.mod files"
		return fmt.Sprintf("%d incompatible changes since %s need a new minor version, not %s: %s", len(breaks), base, version, do)
	}
	return ""
}

// incompatible returns the incompatible changes of the published modules between two trees,
// for the present system.
func incompatible(ctx context.Context, oldRoot, newRoot string) ([]string, error) {
	before, err := load(ctx, oldRoot)
	if err != nil {
		return nil, err
	}
	after, err := load(ctx, newRoot)
	if err != nil {
		return nil, err
	}
	var breaks []string
	for path, old := range before {
		dir := strings.TrimPrefix(path, repo.Prefix)
		fresh := after[path]
		if fresh == nil {
			breaks = append(breaks, dir+": module removed")
			continue
		}
		for _, change := range apidiff.ModuleChanges(old, fresh).Changes {
			if !change.Compatible {
				breaks = append(breaks, dir+": "+strings.ReplaceAll(change.Message, repo.Prefix, ""))
			}
		}
	}
	slices.Sort(breaks)
	return breaks, nil
}

// load returns the published modules of the tree in root, by path, with the types of
// all packages that others can import.
func load(ctx context.Context, root string) (map[string]*apidiff.Module, error) {
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	modules := map[string]*apidiff.Module{}
	var patterns []string
	for _, m := range policy.Published(tree) {
		modules[m.Path()] = &apidiff.Module{Path: m.Path()}
		patterns = append(patterns, m.Path()+"/...")
	}
	config := &packages.Config{
		Context:    ctx,
		Mode:       packages.NeedName | packages.NeedImports | packages.NeedTypes | packages.NeedTypesSizes,
		Dir:        root,
		Env:        append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work")),
		BuildFlags: []string{"-trimpath"}, // makes the build cache work for any directory
	}
	loaded, err := packages.Load(config, patterns...)
	if err != nil {
		return nil, err
	}
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			return nil, fmt.Errorf("%s: %w", pkg.PkgPath, pkg.Errors[0])
		}
		owner := tree.Owner(pkg.PkgPath)
		if owner != nil && modules[owner.Path()] != nil && !policy.Internal(pkg.PkgPath) {
			m := modules[owner.Path()]
			m.Packages = append(m.Packages, pkg.Types)
		}
	}
	return modules, nil
}
