// Package programtest runs the programs of the demo in their tests.
package programtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// Call calls the function of a program in this process, which is faster than a process. Its files are in a directory of
// their own.
func Call(t *testing.T, run func(ctx context.Context, args []string, stdout, stderr *os.File) int, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	var files [2]*os.File
	var texts [2]string
	for i, name := range []string{"stdout", "stderr"} {
		file, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		files[i] = file
	}
	status = run(context.Background(), args, files[0], files[1])
	for i, file := range files {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return status, texts[0], texts[1]
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

// ReadUntil returns all lines up to one that contains text.
func ReadUntil(t *testing.T, out *bufio.Reader, text string) (all string) {
	t.Helper()
	for {
		line, err := out.ReadString('\n')
		if all += line; strings.Contains(line, text) {
			return all
		}
		if err != nil {
			t.Fatalf("%v, want %q in:\n%s", err, text, all)
		}
	}
}

// Interrupt sends Ctrl-C.
func Interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

// End waits for the end of a command, checks its status, and returns the rest of its output.
func End(t *testing.T, cmd *exec.Cmd, out io.Reader, status int) string {
	t.Helper()
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("ended with %v, want status %d\n%s", cmd.ProcessState, status, rest)
	}
	return string(rest)
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
