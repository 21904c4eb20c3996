package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Root returns the nearest directory, from the working directory upwards, that
// holds a go.work file.
//
// The result is absolute, and not cleaned on purpose ("/src/scripts/arch/../..").
// The go command decides whether a cached test result is still valid. For that, it
// checks the files that the test has opened, but only files whose name begins with
// the directory of the test's module. With an unclean name, files of all modules
// count. So a test of the whole tree runs again when the tree has changed.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(dir + "/go.work")
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if clean := filepath.Clean(dir); clean == filepath.Dir(clean) {
			return "", errors.New("no go.work in the working directory or above it: run this inside the repository")
		}
		dir += "/.."
	}
}
