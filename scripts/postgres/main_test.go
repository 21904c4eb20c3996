//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command has a server. The program returns the error of the command, and nothing is
// left.
func TestServerForACommand(t *testing.T) {
	if _, err := programs(); err != nil || os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("needs PostgreSQL, and EPHEMERAL_LONG")
	}
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("OUT", out)
	err := run([]string{"sh", "-c", `dir=${EPHEMERAL_POSTGRES_DSN##*host=}; echo "$dir" >"$OUT"; [ -S "$dir/.s.PGSQL.5432" ] && exit 3`})
	var failed *exec.ExitError
	if !errors.As(err, &failed) || failed.ExitCode() != 3 {
		t.Errorf("got error %v, want exit status 3, which says that the server listens", err)
	}
	dir, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(strings.TrimSpace(string(dir))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the server: got error %v, want that it does not exist", err)
	}
}

// A server whose program is killed is removed by its guard, which this test waits for.
func TestServerOfAKilledProgram(t *testing.T) {
	if _, err := programs(); err != nil || os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("needs PostgreSQL, and EPHEMERAL_LONG")
	}
	s, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(t.Context()); err != nil {
		t.Error(err)
	}
	s.alive.Close() // the kernel does the same
	if err := s.guard.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data: got error %v, want that they do not exist", err)
	}
}
