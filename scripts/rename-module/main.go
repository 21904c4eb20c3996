// Command rename-module gives all modules of the repository another path:
//
//	go run ./scripts/rename-module example.com/our/ephemeral
//
// A fork that is published under its own name needs this command, because Go finds
// modules by path. The command replaces the path in all texts: go.mod files, imports,
// strings, comments and documents. It prints the files that changed. It refuses if git
// has changes that are not committed, unless -f is given.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

func main() {
	force := flag.Bool("f", false, "rename although there are changes that are not committed")
	command.Main("rename-module", []string{"PATH"}, func(ctx context.Context, root string) error {
		return run(ctx, root, flag.Arg(0), *force, os.Stdout)
	})
}

// run renames the modules of the tree in root and prints the names of the files that
// changed. Nothing is written unless all files could be rewritten.
func run(ctx context.Context, root, to string, force bool, stdout io.Writer) error {
	if err := valid(to); err != nil {
		return err
	}
	if !force {
		dirty, err := command.Output(ctx, root, nil, "git", "status", "--porcelain")
		if err != nil {
			return err
		}
		if len(dirty) > 0 {
			return fmt.Errorf("%d files have changes that are not committed: commit them, or rename with -f", bytes.Count(dirty, []byte("\n")))
		}
	}
	err := command.Update(root, stdout, func(tree *repo.Tree) (map[string][]byte, error) { return plan(tree, to) })
	if err == nil {
		fmt.Fprintf(stdout, "\nThe modules are called %s. Now: go run ./scripts/readme && go test work\n", to)
	}
	return err
}

// plan returns the files that change. The old path comes from the tree, not from this
// program. So a second run finds nothing to do.
func plan(tree *repo.Tree, to string) (map[string][]byte, error) {
	core := tree.Module("core")
	if core == nil {
		return nil, errors.New("there is no module core")
	}
	from := strings.TrimSuffix(core.Path(), "/core")
	changed := map[string][]byte{}
	for _, name := range tree.Files {
		before := tree.Text(name)
		after, err := rewrite(name, before, from, to)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !bytes.Equal(before, after) {
			changed[name] = after
		}
	}
	return changed, nil
}
