package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/ephemeralgo/ephemeral/scripts/internal/goproxy"
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
		err = goproxy.Write(filepath.Join(dir, "proxy"), tree, p.version)
	}
	if err != nil {
		return nil, err
	}
	if p.env = goproxy.Isolated(); !published {
		p.env, err = goproxy.Environ(ctx, filepath.Join(dir, "proxy"))
	}
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
