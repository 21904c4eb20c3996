package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// prover proves the modules of one tree. It works in a temporary directory, with the proxy
// and with its own module caches. So the user's cache never has modules of this tree under
// a version that is released later with other contents.
type prover struct {
	tree    *repo.Tree
	version string
	dir     string
	env     []string // environment of the go command inside a temporary module
}

// newProver returns a prover of the tree in root that works in dir. It proves the next
// version, from a proxy that it makes. If published is set, it proves the newest
// release, from the proxy of the environment.
func newProver(ctx context.Context, dir, root string, published bool) (*prover, error) {
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	p := &prover{tree: tree, dir: dir}
	if published {
		p.version, err = lastVersion(tree)
	} else {
		p.version, err = tree.NextVersion()
	}
	if err == nil && !published {
		err = writeProxy(filepath.Join(dir, "proxy"), tree, p.version)
	}
	if err != nil {
		return nil, err
	}
	p.env, err = environment(ctx, dir, published)
	return p, err
}

// lastVersion returns the newest version that the changelog dates.
func lastVersion(tree *repo.Tree) (string, error) {
	sections, err := repo.Changelog(tree.Text("CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(sections, func(s repo.Section) bool { return s.Date != "" })
	if i < 0 {
		return "", errors.New("CHANGELOG.md: nothing is released yet")
	}
	return sections[i].Version, nil
}

// environment returns the environment in which the temporary modules are built: without the
// workspace, and with a module cache that can be removed. Before a release, settings of the
// user do not count, modules of the repository come from the proxy in dir and all others
// from the user's module cache, and nothing comes from the network.
func environment(ctx context.Context, dir string, published bool) ([]string, error) {
	env := append(os.Environ(),
		"GOWORK=off",
		"GOTOOLCHAIN=local",
		// -trimpath makes the results of the build cache independent of the directory.
		"GOFLAGS=-mod=mod -trimpath -modcacherw",
	)
	if published {
		return env, nil
	}
	out, err := command.Output(ctx, dir, append(os.Environ(), "GOWORK=off"), "go", "env", "GOCACHE", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	cache, modcache, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return append(env,
		"GOENV=off",
		"GOPROXY="+fileURL(filepath.Join(dir, "proxy"))+","+fileURL(filepath.Join(modcache, "cache", "download")),
		"GOPRIVATE=",
		"GONOPROXY=",
		"GOSUMDB=off",
		"GOCACHE="+cache,
	), nil
}
