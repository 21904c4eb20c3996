// Package command has the code that the programs of this module share.
package command

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// Main runs the program on the checkout around the working directory. The program takes
// flags, and as many arguments as args names. An interrupt cancels the context. If the
// program fails, Main prints the error and ends the process.
func Main(name string, args []string, program func(ctx context.Context, root string) error) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := repo.Root()
	if err == nil && flag.NArg() != len(args) {
		err = fmt.Errorf("usage: go run ./scripts/%s [flags] %s", name, strings.Join(args, " "))
	}
	if err == nil {
		err = program(ctx, root)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Long skips a test that builds modules, which takes long, unless EPHEMERAL_LONG is set, as in .ci/run, or
// EPHEMERAL_REHEARSAL, as before a release.
func Long(t interface {
	Helper()
	Skip(args ...any)
}) {
	t.Helper()
	if os.Getenv("EPHEMERAL_LONG") == "" && os.Getenv("EPHEMERAL_REHEARSAL") == "" {
		t.Skip("it builds modules: set EPHEMERAL_LONG")
	}
}

// Output runs a program in dir and returns its standard output. A nil env means the
// environment of this process. An error contains the command and its whole output.
func Output(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
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

// Update changes files of the tree in root and prints their names. Plan returns the new
// texts by name; nil removes a file.
func Update(root string, stdout io.Writer, plan func(t *repo.Tree) (map[string][]byte, error)) error {
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return err
	}
	changes, err := plan(tree)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		fmt.Fprintln(stdout, name)
		if changes[name] == nil {
			delete(changes, name)
			if err := os.Remove(filepath.Join(root, name)); err != nil {
				return err
			}
		}
	}
	return WriteFiles(root, changes)
}

// WriteFiles writes the files into dir, and makes the directories of their names.
func WriteFiles[Text string | []byte](dir string, texts map[string]Text) error {
	for name, text := range texts {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
