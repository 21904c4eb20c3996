package main

import (
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// What one process holds stops the others, until it is released or the process is killed.
func TestMesh(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := runCommand(t, "mesh")
	var answers []string
	for line := range strings.Lines(stdout) {
		if _, answer, ok := strings.Cut(line, "takes an order:"); ok {
			answers = append(answers, strings.TrimSpace(answer))
		}
	}
	open, update := `core: refused because of signal "circuit.open.warehouse"`, `core: refused because of signal "update.in-progress" for "prices"`
	got, want := strings.Join(answers, "\n"), strings.Join([]string{"done", open, open, "done", update, "done"}, "\n")
	coretest.Check(t, status == exitOK && got == want, "status %d, got\n%s\nwant\n%s\nstderr: %s", status, got, want, stderr)
}
