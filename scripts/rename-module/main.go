// Command rename-module gives all modules of the repository another path:
//
//	go run ./scripts/rename-module example.com/our/ephemeral
//
// Whoever forks the repository under another name needs that, because Go finds modules
// by path. It exchanges the path where it stands as a path: in go.mod files, imports,
// strings and comments of Go files, and in all other texts. It prints the files that
// changed. It refuses if git has changes that are not committed, unless it is told -f.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

func main() {
	force := flag.Bool("f", false, "rename although there are changes that are not committed")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./scripts/rename-module [-f] PATH")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := repo.Root()
	if err == nil {
		err = run(ctx, root, flag.Arg(0), *force, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename-module:", err)
		os.Exit(1)
	}
}

// run renames the modules of the tree in root and prints the names of the files that
// changed. Nothing is written unless all files could be rewritten.
func run(ctx context.Context, root, to string, force bool, stdout io.Writer) error {
	if err := valid(to); err != nil {
		return err
	}
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return err
	}
	from, err := current(tree)
	if err != nil {
		return err
	}
	if from == to {
		fmt.Fprintf(stdout, "the modules are called %s already\n", to)
		return nil
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
	changed := map[string][]byte{}
	for _, name := range tree.Files {
		before, err := fs.ReadFile(tree.FS, name)
		if err != nil {
			return err
		}
		after, err := rewrite(name, before, from, to)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !bytes.Equal(before, after) {
			changed[name] = after
		}
	}
	for _, name := range tree.Files {
		after, ok := changed[name]
		if !ok {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), after, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(stdout, name)
	}
	fmt.Fprintf(stdout, "\n%d files. Now: go run ./scripts/readme && go test work\n", len(changed))
	return nil
}
