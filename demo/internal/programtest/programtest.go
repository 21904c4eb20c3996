// Package programtest runs the programs of the demo in their tests.
package programtest

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Env is the variable that makes a test binary run its program. A TestMain looks at it.
const Env = "EPHEMERAL_TEST_DEMO"

// Command is the program as a separate process: the test binary, with a directory of its own for files.
func Command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	temp := t.TempDir()
	cmd.Env = append(os.Environ(), Env+"=1", "TMPDIR="+temp, "TMP="+temp)
	return cmd
}

// Run runs a command to its end.
func Run(t *testing.T, cmd *exec.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		status = exit.ExitCode()
	}
	return status, out.String(), errs.String()
}

// Start starts a command and returns its output.
func Start(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(stdout)
}

// NothingLeft checks that the directory of a command is empty.
func NothingLeft(t *testing.T, env []string) {
	t.Helper()
	for _, e := range env {
		if dir, ok := strings.CutPrefix(e, "TMPDIR="); ok && strings.HasPrefix(dir, os.TempDir()) {
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		}
	}
}
