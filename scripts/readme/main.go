// Command readme rewrites the Go blocks of all Markdown files from the compiled
// examples that they name, the table of signals from the exported constants, and the table
// of costs from what bench/compare has written:
//
//	go run ./scripts/readme
//
// It prints the files it has changed.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
	"github.com/ephemeralgo/ephemeral/scripts/internal/snippet"
)

func main() {
	command.Main("readme", nil, func(_ context.Context, root string) error { return command.Update(root, os.Stdout, plan) })
}

// plan returns the Markdown files that change.
func plan(tree *repo.Tree) (map[string][]byte, error) {
	changed := map[string][]byte{}
	rows, err := signals(tree)
	if err != nil {
		return nil, err
	}
	for _, name := range tree.Files {
		if path.Ext(name) != ".md" {
			continue
		}
		text, err := snippet.Update(tree.Text(name), func(example string) (string, error) { return snippet.Body(tree, example) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text = table.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(rows, "$", "$$")))
		if costTable.Match(text) {
			costs, err := costs(tree)
			if err != nil {
				return nil, err
			}
			text = costTable.ReplaceAll(text, []byte("${1}"+costs))
		}
		if !bytes.Equal(text, tree.Text(name)) {
			changed[name] = text
		}
	}
	return changed, nil
}
