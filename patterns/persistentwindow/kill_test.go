package persistentwindow_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/persistentwindow"
)

func openKilled(dir string) (*sqlitewriter.Writer, *signals.Sink, *persistentwindow.Window) {
	w := core.Must(sqlitewriter.Open(context.Background(), filepath.Join(dir, "kill.db"), sqlitewriter.Options{}))
	sink := signals.NewSink(signals.SinkOptions{Capacity: 1 << 20, MaxAge: -1})
	return w, sink, core.Must(persistentwindow.Open(context.Background(), w, sink,
		persistentwindow.Options{FlushInterval: time.Millisecond, MaxAge: -1, MaxRows: -1, MaxBatch: 3, MaxQueued: 1 << 20}))
}

// Signals that Flush has written are restored after SIGKILL, once and in order. Signals
// raised after the flush may be missing from the end.
func TestKill(t *testing.T) {
	require.NoError(t, coretest.KillLoop(t, coretest.Kill{Child: raiseAndFlush(false), Check: checkFlushed}))
}

// The same test fails if a signal is acknowledged before it is flushed.
func TestKillFindsEarlyAcknowledgement(t *testing.T) {
	require.ErrorContains(t, coretest.KillLoop(t, coretest.Kill{Child: raiseAndFlush(true), Check: checkFlushed, Rounds: 50}), "lost")
}

func raiseAndFlush(early bool) func(string, int, func(string)) {
	return func(dir string, round int, ack func(string)) {
		_, sink, window := openKilled(dir)
		for n := 0; ; n++ {
			item := fmt.Sprintf("%d.%d", round, n)
			sink.RaiseKey("n", item)
			if early {
				ack(item)
			} else if n%7 == 6 {
				if err := window.Flush(context.Background()); err != nil {
					panic(err)
				}
				ack(item)
			}
		}
	}
}

func checkFlushed(dir string, acked []string) error {
	w, sink, window := openKilled(dir)
	defer w.Close()
	defer window.Close()
	there, last, want := map[string]bool{}, -1, 0
	for s := range sink.Sense(signals.Query{Pattern: "n"}) {
		var round, n int
		core.Must(fmt.Sscanf(s.Key, "%d.%d", &round, &n))
		if round > last {
			last, want = round, 0
		}
		if round < last || n != want {
			return fmt.Errorf("%s is there, want %d.%d", s.Key, last, want)
		}
		there[s.Key] = true
		want++
	}
	if i := slices.IndexFunc(acked, func(item string) bool { return !there[item] }); i >= 0 {
		return fmt.Errorf("%s was flushed and is lost", acked[i])
	}
	return nil
}
