//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/demo/internal/programtest"
)

// After an interrupt, the workers finish their running work, and nothing stays behind.
func TestInterruptDurable(t *testing.T) {
	t.Parallel()
	inPlaces(t, func(t *testing.T, env string) {
		cmd := programtest.Command(t, "-items", "800")
		cmd.Env, cmd.Stderr = append(cmd.Env, env), t.Output()
		stdout := programtest.Start(t, cmd)
		for range 2 {
			programtest.ReadUntil(t, stdout, "kill -9")
		}
		programtest.Interrupt(t, cmd)
		rest := programtest.End(t, cmd, stdout, program.Interrupted)
		for _, want := range []string{"interrupted: ", " waiting, 0 lost\n", " 0 twice, 0 out of the order"} {
			coretest.Check(t, strings.Contains(rest, want), "want %q in:\n%s", want, rest)
		}
		programtest.NothingLeft(t, cmd.Env)
	})
}
