package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// saver saves keys "NAME 00000000", "NAME 00000001" … one after the other until ctx ends or
// Save fails, and calls acknowledge for each that is saved, or is going to be.
func saver(ctx context.Context, e *Engine, name string, early bool, acknowledge func(key string)) error {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s %08d", name, n)
		if early {
			acknowledge(key)
		}
		if err := e.Save(context.Background(), pairs(key, valueOf(key))); err != nil {
			return err
		}
		if !early {
			acknowledge(key)
		}
	}
	return nil
}

func valueOf(key string) string { return `{"key": "` + strings.Repeat(key, 20) + `"}` }

// lost returns how many of the acknowledged keys are not in e. It fails the test if a value
// is not the whole of what was saved or, with inOrder, a key is missing before one that is
// there.
func lost(t testing.TB, e *Engine, acknowledged []string, inOrder bool) int {
	t.Helper()
	there, next := map[string]bool{}, map[string]int{}
	for item, err := range e.List(context.Background(), "", true) {
		require.NoError(t, err)
		require.Equal(t, valueOf(item.Key), string(item.Value))
		name, n, _ := strings.Cut(item.Key, " ")
		require.True(t, !inOrder || n == fmt.Sprintf("%08d", next[name]), "the keys of a saver are there from the first to the last")
		next[name]++
		there[item.Key] = true
	}
	n := 0
	for _, key := range acknowledged {
		if !there[key] {
			n++
		}
	}
	t.Logf("%d saved, %d acknowledged, %d of them lost", len(there), len(acknowledged), n)
	return n
}

// saveUntilKilled is the process that TestKill kills.
func saveUntilKilled() {
	ctx := context.Background()
	dsn, schema, mode := os.Getenv("EPHEMERAL_POSTGRES_DSN"), os.Getenv("EPHEMERAL_POSTGRES_SCHEMA"), os.Getenv("EPHEMERAL_POSTGRES_CHILD")
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		panic(err)
	}
	e, err := NewEngine(ctx, pool, Options{Schema: schema})
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			panic(saver(ctx, e, fmt.Sprint(i), mode == "early", func(key string) { os.Stdout.WriteString(key + "\n") }))
		})
	}
	all.Wait()
}

// kill runs saveUntilKilled, kills it at a random moment after its first line, and returns
// the lines that it has written.
func kill(t testing.TB, schema, mode string) []string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EPHEMERAL_POSTGRES_CHILD="+mode, "EPHEMERAL_POSTGRES_SCHEMA="+schema)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var lines []string
	for in := bufio.NewReader(out); ; {
		line, err := in.ReadString('\n')
		if err != nil { // a line without its end is no acknowledgement
			break
		}
		if len(lines) == 0 {
			time.AfterFunc(rand.N(100*time.Millisecond), func() { cmd.Process.Kill() })
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	require.Error(t, cmd.Wait())
	require.NotEmpty(t, lines)
	return lines
}

// A process that is killed has lost nothing that it has acknowledged. One that acknowledges
// before it saves has, so the test would see it.
func TestKill(t *testing.T) {
	rounds := 3
	if os.Getenv("EPHEMERAL_LONG") != "" && !coretest.Race {
		rounds = 200
	}
	f := newFixture(t)
	e := f.open()
	for range rounds {
		require.Zero(t, lost(t, e, kill(t, f.opts.Schema, "late"), true))
		f.untilAlone()
		require.NoError(t, e.Clear(t.Context()))
	}
	for seen := 0; seen == 0; {
		acknowledged := kill(t, f.opts.Schema, "early")
		f.untilAlone()
		seen = lost(t, e, acknowledged, true)
		require.NoError(t, e.Clear(t.Context()))
	}
}

// untilAlone returns when no statement of a killed process runs any more: each holds a lock
// of the table until it ends.
func (f *fixture) untilAlone() {
	f.exec("begin; lock table " + f.opts.Schema + ".data in share mode; commit")
}

// server starts a server of the test's own. Restart stops it without warning and starts it
// again.
func server(t testing.TB) (dsn string, restart func()) {
	cmd := exec.Command(setting(t, "EPHEMERAL_POSTGRES_PROGRAM"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		require.NoError(t, cmd.Wait())
	})
	answers := bufio.NewReader(out)
	answer := func() string {
		line, err := answers.ReadString('\n')
		require.NoError(t, err)
		return strings.TrimSpace(line)
	}
	return answer(), func() {
		_, err := io.WriteString(in, "restart\n")
		require.NoError(t, err)
		answer()
	}
}

// A server that is stopped under load has lost nothing that Save has acknowledged, and the
// store goes on when it is there again. With synchronous_commit off it has lost something,
// so the test would see it.
func TestServerCrash(t *testing.T) {
	dsn, restart := server(t)
	for _, mode := range []string{"on", "off"} {
		f := newFixtureAt(t, dsn+"&synchronous_commit="+mode)
		e := f.open()
		f.exec("alter system set wal_writer_delay = '10s'")
		f.exec("select pg_reload_conf()")
		total := 0
		for round := 0; round < 3; round++ {
			require.NoError(t, e.Clear(t.Context()))
			f.exec("checkpoint")
			total += crash(t, e, restart, mode == "on")
		}
		if mode == "on" {
			assert.Zero(t, total)
		} else {
			assert.NotZero(t, total)
		}
	}
}

// crash restarts the server while 8 savers work, and returns how many keys are lost.
func crash(t testing.TB, e *Engine, restart func(), inOrder bool) int {
	var mu sync.Mutex
	var acknowledged []string
	var all sync.WaitGroup
	enough := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	for i := range 8 {
		all.Go(func() {
			err := saver(ctx, e, fmt.Sprint(i), false, func(key string) {
				mu.Lock()
				defer mu.Unlock()
				acknowledged = append(acknowledged, key)
				if len(acknowledged) == 200 {
					close(enough)
				}
			})
			if err != nil { // the connection broke while its statement ran
				assert.ErrorIs(t, err, data.ErrUndecided)
			}
		})
	}
	<-enough
	restart()
	stop()
	all.Wait()
	n := lost(t, e, acknowledged, inOrder)
	require.NoError(t, errors.Join(e.Save(t.Context(), pairs("after", `1`)), e.Delete(t.Context(), "after")))
	return n
}
