package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// prover proves the modules of one tree. It owns a temporary directory, with the
// proxy and with module caches of its own: what the tree holds today must not stay
// in the user's cache under a version that is released tomorrow.
type prover struct {
	tree    *repo.Tree
	version string
	dir     string
	env     []string // for the go command, inside a throw-away module
}

// newProver returns what proves the tree in root at its next version, from a proxy
// that it makes, or else, published, at its newest release, from where the
// environment gets modules. Close it to remove what it left.
func newProver(ctx context.Context, root string, published bool) (_ *prover, err error) {
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	version := ""
	if published {
		version, err = lastVersion(tree)
	} else {
		version, err = repo.NextVersion(tree.FS)
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "consumerproof-")
	if err != nil {
		return nil, err
	}
	p := &prover{tree: tree, version: version, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if !published {
		if err := writeProxy(filepath.Join(dir, "proxy"), tree, version); err != nil {
			return nil, err
		}
		if err := fetchLibraries(ctx, root, tree); err != nil {
			return nil, err
		}
	}
	p.env, err = environment(ctx, dir, published)
	return p, err
}

// lastVersion returns the newest version that the changelog dates.
func lastVersion(tree *repo.Tree) (string, error) {
	sections, err := repo.Changelog(tree.FS)
	if err != nil {
		return "", err
	}
	for _, s := range sections {
		if s.Date != "" {
			return s.Version, nil
		}
	}
	return "", errors.New("CHANGELOG.md: nothing is released yet")
}

// close removes the temporary directory.
func (p *prover) close() error { return os.RemoveAll(p.dir) }

// fetchLibraries has the user's module cache hold the libraries that some modules
// need, at the versions that count outside the workspace.
func fetchLibraries(ctx context.Context, root string, tree *repo.Tree) error {
	for _, m := range policy.Published(tree) {
		if len(policy.LibrariesOf(m.Dir)) == 0 {
			continue
		}
		dir := filepath.Join(root, filepath.FromSlash(m.Dir))
		if _, err := command.Output(ctx, dir, append(os.Environ(), "GOWORK=off"), "go", "list", "-deps", `-f={{""}}`, "./..."); err != nil {
			return fmt.Errorf("%s: %w", m.Dir, err)
		}
	}
	return nil
}

// environment returns the environment in which the throw-away modules are built:
// without the workspace and with a writable module cache, which can simply be removed.
// Before the release there are no settings of the user either, our modules come from
// the proxy in dir, all others from the user's module cache, and nothing from the network.
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
	out, err := command.Output(ctx, dir, append(os.Environ(), "GOWORK=off"), "go", "env", "-json", "GOCACHE", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	var user struct{ GOCACHE, GOMODCACHE string }
	if err := json.Unmarshal(out, &user); err != nil {
		return nil, err
	}
	return append(env,
		"GOENV=off",
		"GOPROXY="+fileURL(filepath.Join(dir, "proxy"))+","+fileURL(filepath.Join(user.GOMODCACHE, "cache", "download")),
		"GOPRIVATE=",
		"GONOPROXY=",
		"GOSUMDB=off",
		"GOCACHE="+user.GOCACHE,
	), nil
}
