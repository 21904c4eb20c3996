// Command complete writes the module complete, which shows every exported name of
// every published module in one flat package:
//
//	go run ./scripts/complete
//
// It writes one file for each package and the requirements in go.mod, removes what
// is stale, and prints the files it has changed. The tests fail when it has not been
// run. When a module has come to require another library, "go mod tidy" in complete
// adds that, and it stays.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// dir is where the module is.
const dir = "complete"

func main() {
	root, err := repo.Root()
	if err == nil {
		err = update(root, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "complete:", err)
		os.Exit(1)
	}
}

// update makes the files of the module in the tree in root what they should be, and
// prints the names of those that changed.
func update(root string, stdout io.Writer) error {
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return err
	}
	changes, err := plan(tree)
	if err != nil {
		return err
	}
	for _, c := range changes {
		name := filepath.Join(root, c.name)
		if c.content == nil {
			err = os.Remove(name)
		} else {
			err = os.WriteFile(name, c.content, 0o644)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, c.name)
	}
	return nil
}

// A change is a file that is not what it should be.
type change struct {
	name    string
	was     []byte // nil: there is no such file
	content []byte // as it should be; nil: there should be no such file
}

// plan returns what has to change, sorted by name of file.
func plan(tree *repo.Tree) ([]change, error) {
	packages, err := exports(tree)
	if err != nil {
		return nil, err
	}
	if err := settle(packages); err != nil {
		return nil, err
	}
	want := map[string][]byte{}
	for _, p := range packages {
		content, err := render(p)
		if err != nil {
			return nil, err
		}
		want[p.file()] = content
	}
	if want[dir+"/go.mod"], err = goMod(tree); err != nil {
		return nil, err
	}
	return compare(tree, want)
}
