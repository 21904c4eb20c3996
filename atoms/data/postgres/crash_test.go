package postgres

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// saver saves keys "NAME 00000000", "NAME 00000001" … one after the other until ctx ends or
// Save fails. It calls acknowledge for each key after the save.
func saver(ctx context.Context, e *engine, name string, acknowledge func(key string)) error {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s %08d", name, n)
		if err := e.Save(context.Background(), pairs(key, valueOf(key))); err != nil {
			return err
		}
		acknowledge(key)
	}
	return nil
}

func valueOf(key string) string { return `{"key": "` + strings.Repeat(key, 20) + `"}` }

// lost returns how many of the acknowledged keys are not in e. It fails the test if a value
// is not complete.
func lost(t testing.TB, e *engine, acknowledged []string) (n int) {
	t.Helper()
	there := map[string]bool{}
	for item, err := range e.List(context.Background(), "", true) {
		require.NoError(t, err)
		require.Equal(t, valueOf(item.Key), string(item.Value))
		there[item.Key] = true
	}
	for _, key := range acknowledged {
		if !there[key] {
			n++
		}
	}
	t.Logf("%d saved, %d acknowledged, %d of them lost", len(there), len(acknowledged), n)
	return n
}

// server starts a server for the test. Restart stops it without warning and starts it
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

// A server that is stopped under load loses nothing that Save has acknowledged, and the
// store goes on when the server is back. With synchronous_commit off, the server does lose
// keys, so the test would notice a loss.
func TestServerCrash(t *testing.T) {
	dsn, restart := server(t)
	for _, mode := range []string{"on", "off"} {
		f := newFixtureAt(t, dsn+"&synchronous_commit="+mode)
		e := f.open()
		f.exec("alter system set wal_writer_delay = '10s'")
		f.exec("select pg_reload_conf()")
		total, most := 0, 1
		if mode == "off" || os.Getenv("EPHEMERAL_LONG") != "" {
			most = 3
		}
		for round := 0; round < most && total == 0; round++ {
			require.NoError(t, e.Clear(t.Context()))
			f.exec("checkpoint")
			total += lost(t, e, crash(t, e, restart))
			require.NoError(t, e.Save(t.Context(), pairs("after", `1`)))
		}
		assert.Equal(t, mode == "off", total > 0)
	}
}

// crash restarts the server while 8 savers work, and returns what they have acknowledged.
func crash(t testing.TB, e *engine, restart func()) (acknowledged []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	enough := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	for i := range 8 {
		all.Go(func() {
			err := saver(ctx, e, fmt.Sprint(i), func(key string) {
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
	return acknowledged
}
