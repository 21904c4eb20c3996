// Package repotest has the repositories of tests.
package repotest

import (
	"maps"
	"os"
	"testing"
	"testing/fstest"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// Here loads the checkout that the test runs in.
func Here(t testing.TB) (root string, tree *repo.Tree) {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err = repo.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return root, tree
}

// Load loads a repository of these files. It has a go.work without modules if there is none among them.
func Load(t testing.TB, files map[string]string) *repo.Tree {
	t.Helper()
	tree, err := repo.Load(FS(files))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// FS returns the files of such a repository.
func FS(files map[string]string) fstest.MapFS {
	all := map[string]string{"go.work": "go 1.26\n"}
	maps.Copy(all, files)
	fsys := fstest.MapFS{}
	for name, text := range all {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}
