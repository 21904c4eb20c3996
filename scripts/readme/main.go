// Command readme rewrites the Go blocks of all Markdown files from the compiled
// examples they are marked with:
//
//	go run ./scripts/readme
//
// It prints the files it has changed.
package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
	"github.com/ephemeralgo/ephemeral/scripts/internal/snippet"
)

func main() {
	root, err := repo.Root()
	if err == nil {
		err = update(root, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "readme:", err)
		os.Exit(1)
	}
}

// update rewrites the Markdown files of the tree in root and prints the names of
// those that changed.
func update(root string, stdout io.Writer) error {
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return err
	}
	body := func(example string) (string, error) { return snippet.Body(tree.FS, example) }
	for _, name := range tree.Files {
		if path.Ext(name) != ".md" {
			continue
		}
		before, err := fs.ReadFile(tree.FS, name)
		if err != nil {
			return err
		}
		after, err := snippet.Update(before, body)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if bytes.Equal(before, after) {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, name), after, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(stdout, name)
	}
	return nil
}
