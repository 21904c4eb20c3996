package sqlitewriter_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const fairEnv = "SQLITEWRITER_FAIR_CHILD"

// fairRows is how many rows all processes write together.
const fairRows = 1000

// fairChild writes rows with the number of the process until there are enough of them.
func fairChild(env string) {
	dir, number := env[1:], int(env[0]-'0')
	w := core.Must(sqlitewriter.Open(context.Background(), filepath.Join(dir, "fair.db"), sqlitewriter.Options{MaxGroup: -1}))
	os.Stdout.WriteString("ready\n")
	io.ReadAll(os.Stdin) // waits until all children are ready
	var all sync.WaitGroup
	for range 2 { // two goroutines, so that the next turn can follow at once
		all.Go(func() {
			for id := int64(0); id < fairRows; {
				id = core.Must(core.Must(w.Exec(context.Background(), "insert into fair(process) values(?)", number)).LastInsertId())
			}
		})
	}
	all.Wait()
	core.Must(0, w.Close())
	os.Exit(0)
}

// Processes that write all the time get about the same number of turns.
func TestProcessesTakeTurns(t *testing.T) {
	if env, ok := os.LookupEnv(fairEnv); ok {
		fairChild(env)
	}
	const processes = 5
	dir := t.TempDir()
	w := openAt(t, filepath.Join(dir, "fair.db"), sqlitewriter.Options{})
	execute(t, w, "create table fair(id integer primary key, process int)")
	var children []*exec.Cmd
	var begin []io.Closer
	for i := range processes {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcessesTakeTurns$")
		child.Env = append(os.Environ(), fairEnv+"="+string(rune('0'+i))+dir)
		child.Stderr = os.Stderr
		in, out := core.Must(child.StdinPipe()), core.Must(child.StdoutPipe())
		require.NoError(t, child.Start())
		require.Equal(t, "ready\n", core.Must(bufio.NewReader(out).ReadString('\n')))
		children, begin = append(children, child), append(begin, in)
	}
	for _, in := range begin {
		require.NoError(t, in.Close())
	}
	for _, child := range children {
		require.NoError(t, child.Wait())
	}
	var counts []int
	for i := range processes {
		var n int
		require.NoError(t, w.DB().QueryRow("select count(*) from fair where process=? and id<=?", i, fairRows).Scan(&n))
		counts = append(counts, n)
	}
	t.Log(counts)
	assert.Less(t, slices.Max(counts), 3*slices.Min(counts), "%v", counts)
}

// A write that waits for another process ends with its context, and so do Open and Close.
func TestWaitForTheLockEnds(t *testing.T) {
	w := openLog(t, sqlitewriter.Options{})
	unlock := core.Must(sqlitewriter.LockFile(w.Path()))
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errOnPurpose)
	defer cancel()
	_, err := w.Exec(ctx, insert, "a")
	assert.Equal(t, errOnPurpose, err)
	later := begin(t.Context(), w, sqlitewriter.Statement{SQL: insert, Args: []any{"b"}})
	unlock()
	require.NoError(t, later())
	assert.Equal(t, []string{"b"}, texts(t, w.DB()))

	defer core.Must(sqlitewriter.LockFile(w.Path()))()
	require.NoError(t, w.Start(t.Context(), func(context.Context, *sqlitewriter.Tx) error { panic("it waits") }))
	require.NoError(t, w.Close())
	ctx, cancel = context.WithTimeoutCause(t.Context(), time.Millisecond, errOnPurpose)
	defer cancel()
	_, err = sqlitewriter.Open(ctx, w.Path(), sqlitewriter.Options{})
	assert.ErrorIs(t, err, errOnPurpose)
}

// If the lock file fails, the writes that wait for it fail, and a signal says so once.
func TestFailureOfTheLockFileIsSignalled(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	w := openLog(t, sqlitewriter.Options{Sink: sink})
	raised := coretest.Watch(t, sink, "write.*")
	w.BreakLock()
	_, err := w.Exec(t.Context(), insert, "a")
	assert.ErrorContains(t, err, "app.db.lock: use of closed file")
	failure, _ := sqlitewriter.Failed.From(raised.ExpectExactly(sqlitewriter.SignalWriting, sqlitewriter.SignalFailed)[1])
	assert.Equal(t, err, failure)
}
