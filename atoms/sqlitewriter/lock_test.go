package sqlitewriter_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

const fairEnv = "SQLITEWRITER_FAIR_CHILD"

// fairRows is how many rows all processes write together.
const fairRows = 1000

// fairChild writes rows with the number of the process until there are enough of them.
func fairChild(env string) {
	dir, number := env[1:], int(env[0]-'0')
	w, err := sqlitewriter.Open(context.Background(), filepath.Join(dir, "fair.db"), sqlitewriter.Options{})
	must(err)
	os.Stdout.WriteString("ready\n")
	io.ReadAll(os.Stdin) // until all are ready
	for id := int64(0); id < fairRows; {
		r, err := w.Exec(context.Background(), "insert into fair(process) values(?)", number)
		must(err)
		id, err = r.LastInsertId()
		must(err)
	}
	must(w.Close())
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
		in, err := child.StdinPipe()
		require.NoError(t, err)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
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

// A write that waits for another process ends with its context, and leaves no goroutine behind.
func TestWaitForTheLockEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openLog(t, sqlitewriter.Options{})
		unlock, err := sqlitewriter.LockFile(w.Path())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errOnPurpose)
		defer cancel()
		_, err = w.Exec(ctx, insert, "a")
		assert.Equal(t, errOnPurpose, err)
		require.NoError(t, w.WaitIdle(t.Context())) // although the lock is held

		later := w.Begin(t.Context(), sqlitewriter.Statement{SQL: insert, Args: []any{"b"}})
		time.Sleep(time.Hour)
		unlock()
		require.NoError(t, later())
		assert.Equal(t, []string{"b"}, texts(t, w.DB()))

		path := filepath.Join(t.TempDir(), "other.db")
		unlock, err = sqlitewriter.LockFile(path)
		require.NoError(t, err)
		defer unlock()
		_, err = sqlitewriter.Open(ctx, path, sqlitewriter.Options{})
		assert.ErrorIs(t, err, errOnPurpose)
	})
}
