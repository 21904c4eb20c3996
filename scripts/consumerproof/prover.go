package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// prover proves the modules of one tree. It owns a temporary directory, with the
// proxy and with a module cache of its own: what the tree holds today must not stay
// in the user's cache under a version that is released tomorrow.
type prover struct {
	tree    *repo.Tree
	version string
	dir     string
	env     []string // for the go command, inside a throw-away module
}

// newProver makes the proxy from the tree in root. Close it to remove what it left.
func newProver(ctx context.Context, root string) (_ *prover, err error) {
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	version, err := repo.NextVersion(tree.FS)
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
	if err := writeProxy(filepath.Join(dir, "proxy"), tree, version); err != nil {
		return nil, err
	}
	if err := fetchLibraries(ctx, root, tree); err != nil {
		return nil, err
	}
	p.env, err = environment(ctx, dir)
	return p, err
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
		if _, err := command(ctx, dir, append(os.Environ(), "GOWORK=off"), "go", "list", "-deps", `-f={{""}}`, "./..."); err != nil {
			return fmt.Errorf("%s: %w", m.Dir, err)
		}
	}
	return nil
}

// environment returns the environment in which the throw-away modules are built:
// no workspace, no settings of the user, our modules from the proxy in dir, all
// others from the user's module cache, and nothing from the network.
func environment(ctx context.Context, dir string) ([]string, error) {
	out, err := command(ctx, dir, append(os.Environ(), "GOWORK=off"), "go", "env", "-json", "GOCACHE", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	var user struct{ GOCACHE, GOMODCACHE string }
	if err := json.Unmarshal(out, &user); err != nil {
		return nil, err
	}
	return append(os.Environ(),
		"GOENV=off",
		"GOWORK=off",
		"GOTOOLCHAIN=local",
		// -trimpath also makes the results of the build cache independent of the
		// temporary directory, and a writable module cache can simply be removed.
		"GOFLAGS=-mod=mod -trimpath -modcacherw",
		"GOPROXY="+fileURL(filepath.Join(dir, "proxy"))+","+fileURL(filepath.Join(user.GOMODCACHE, "cache", "download")),
		"GOPRIVATE=",
		"GONOPROXY=",
		"GOSUMDB=off",
		"GOMODCACHE="+filepath.Join(dir, "modcache"),
		"GOCACHE="+user.GOCACHE,
	), nil
}

// command runs a program and returns its standard output. The error tells the
// command and all it has printed.
func command(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = env
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, stderr.Bytes(), stdout.Bytes())
	}
	return stdout.Bytes(), nil
}
