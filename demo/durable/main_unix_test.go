//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/demo/internal/programtest"
)

// After an interrupt, the workers finish their running work, and nothing stays behind.
func TestInterruptDurable(t *testing.T) {
	t.Parallel()
	inPlaces(t, func(t *testing.T, env string) {
		cmd := programtest.Command(t, "-items", "2000")
		cmd.Env, cmd.Stderr = append(cmd.Env, env), t.Output()
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stdout := bufio.NewReader(pipe)
		for kills := 0; kills < 2; {
			line, err := stdout.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			kills += strings.Count(line, "kill -9")
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(stdout)
		err = cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != program.Interrupted {
			t.Errorf("ended with %v, want status %d", err, program.Interrupted)
		}
		for _, want := range []string{"interrupted: ", " waiting, 0 lost\n", " 0 twice, 0 out of the order"} {
			coretest.Check(t, strings.Contains(string(rest), want), "want %q in:\n%s", want, rest)
		}
		programtest.NothingLeft(t, cmd.Env)
	})
}
