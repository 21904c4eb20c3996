//go:build unix

package embedded_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/mesh"
	"github.com/ephemeralgo/ephemeral/atoms/mesh/embedded"
)

// What a process holds ends when it is killed, and while it is stopped.
func TestKilledAndStopped(t *testing.T) {
	at := address(t)
	here := join(t, run(t, embedded.Options{Clients: at, Secret: secret}).Conn(), options("here"))
	killed, stopped := start(t, at, options("killed")), start(t, at, options("stopped"))
	killed.do("hold a.killed")
	stopped.do("hold a.stopped")
	here.present(t, "a.killed")
	here.present(t, "a.stopped")

	begun := time.Now()
	require.NoError(t, killed.cmd.Process.Kill())
	here.gone(t, "a.killed")
	t.Logf("killed: gone after %.2f x Lease", float64(time.Since(begun))/float64(lease))
	assert.Greater(t, time.Since(begun), lease/2)
	assert.True(t, here.sink.Has("a.stopped") && here.sink.Has(mesh.SignalLost))

	begun = time.Now()
	require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGSTOP))
	here.gone(t, "a.stopped")
	here.present(t, mesh.SignalAlone)
	t.Logf("stopped: gone after %.2f x Lease", float64(time.Since(begun))/float64(lease))
	begun = time.Now()
	require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGCONT))
	here.present(t, "a.stopped")
	t.Logf("continued: back after %.2f x Lease", float64(time.Since(begun))/float64(lease))

	// Another process takes its place: the old one does not come back beside it.
	require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGSTOP))
	here.gone(t, "a.stopped")
	next := start(t, at, options("stopped"))
	next.do("hold a.next")
	here.present(t, "a.next")
	require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGCONT))
	for stopped.do("has mesh.duplicate") != "true" {
		time.Sleep(lease / 8) // it is asked, not guessed
	}
	refused := here.Stats().Refused
	stopped.do("raise a.old")
	for here.Stats().Refused == refused {
		time.Sleep(lease / 8)
	}
	assert.False(t, here.sink.Has("a.old, a.stopped"))
	assert.True(t, here.sink.Has("a.next"))
}
