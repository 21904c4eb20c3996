package main

import (
	"os"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/demo/internal/programtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(programtest.Env) == "" {
		os.Exit(m.Run())
	}
	main()
}

func TestUsage(t *testing.T) {
	status, _, stderr := programtest.Call(t, run, "x")
	coretest.Check(t, status == program.Unusable && strings.Contains(stderr, "mesh takes no arguments"), "status %d, %s", status, stderr)
}

// What one process holds stops the others, until it is released or the process is killed.
func TestMesh(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := programtest.Run(t, programtest.Command(t))
	var answers []string
	for line := range strings.Lines(stdout) {
		if _, answer, ok := strings.Cut(line, "takes an order:"); ok {
			answers = append(answers, strings.TrimSpace(answer))
		}
	}
	open, update := `core: refused because of signal "circuit.open.warehouse"`, `core: refused because of signal "update.in-progress" for "prices"`
	got, want := strings.Join(answers, "\n"), strings.Join([]string{"done", open, open, "done", update, "done"}, "\n")
	coretest.Check(t, status == program.OK && got == want, "status %d, got\n%s\nwant\n%s\nstderr: %s", status, got, want, stderr)
}
