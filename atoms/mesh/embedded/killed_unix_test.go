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
	t.Parallel()
	at := address(t)
	opts := options("here")
	opts.Lease = lease
	conn := run(t, embedded.Options{Clients: at, Secret: secret}).Conn()
	here := join(t, conn, opts)
	killed, stopped := start(t, at, options("killed")), start(t, at, options("stopped"))
	killed.do("hold a.killed")
	stopped.do("hold a.stopped")
	here.present(t, "a.killed")
	here.present(t, "a.stopped")

	seen := here.seen("killed")
	require.NoError(t, killed.cmd.Process.Kill())
	here.gone(t, "a.killed")
	assert.GreaterOrEqual(t, time.Since(seen), lease, "not before the end of the lease")
	t.Logf("killed: gone %v after the last beat but one", time.Since(seen).Round(time.Millisecond))
	here.present(t, "a.stopped")
	assert.True(t, here.sink.Has(mesh.SignalLost))

	seen = here.seen("stopped")
	require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGSTOP))
	here.gone(t, "a.stopped")
	assert.GreaterOrEqual(t, time.Since(seen), lease)
	here.present(t, mesh.SignalAlone)
	begun := time.Now()
	require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGCONT))
	here.present(t, "a.stopped")
	t.Logf("continued: back after %v", time.Since(begun).Round(time.Millisecond))

	// Another process takes its place: the old one does not come back beside it.
	require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGSTOP))
	here.gone(t, "a.stopped")
	next := start(t, at, options("stopped"))
	next.do("hold a.next")
	here.present(t, "a.next")
	require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGCONT))
	stopped.do("wait mesh.duplicate")
	facts, err := conn.SubscribeSync("ephemeral.mesh.v1.test.all.facts.*")
	require.NoError(t, err)
	require.NoError(t, conn.FlushWithContext(soon(t)))
	stopped.do("raise a.old")
	_, err = facts.NextMsgWithContext(soon(t))
	require.NoError(t, err)
	next.do("raise a.marker") // it comes behind what has come on this connection
	here.present(t, "a.marker")
	assert.NotZero(t, here.Stats().Refused)
	assert.False(t, here.sink.Has("a.old, a.stopped"))
	assert.True(t, here.sink.Has("a.next"))
}
