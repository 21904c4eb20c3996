package file

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func openStore(ctx context.Context, dir string) data.Store[string, int] {
	return core.Must(Open[string](ctx, dir, data.Options[int]{}))
}

// A killed process loses no acknowledged save.
func TestKill(t *testing.T) {
	require.NoError(t, coretest.KillLoop(t, kill(false)))
}

// TestKill would fail if the acknowledgement came before the save.
func TestKillNoticesAnEarlyAcknowledgement(t *testing.T) {
	k := kill(true)
	k.Rounds = 20
	assert.ErrorContains(t, coretest.KillLoop(t, k), "is lost")
}

// kill has a child of four goroutines, and the check of its files. Each goroutine saves
// ascending numbers under its own ten keys.
func kill(early bool) coretest.Kill {
	const savers, keys = 4, 10
	ctx := context.Background()
	return coretest.Kill{
		Child: func(dir string, round int, ack func(string)) {
			s := openStore(ctx, dir)
			for saver := range savers {
				go func() {
					for n := round << 20; ; n++ {
						key := fmt.Sprint(saver, "-", n%keys)
						if early {
							ack(fmt.Sprint(key, " ", n))
						}
						if err := s.Save(ctx, key, n); err != nil {
							panic(err)
						}
						if !early {
							ack(fmt.Sprint(key, " ", n))
						}
					}
				}()
			}
		},
		Check: func(dir string, acked []string) error {
			s := openStore(ctx, dir)
			defer s.Close()
			for _, item := range acked {
				var key string
				var n int
				core.Must(fmt.Sscan(item, &key, &n))
				if got, _, err := s.Load(ctx, key); got < n || err != nil {
					return fmt.Errorf("%s is lost, there is %d: %w", item, got, err)
				}
			}
			files, err := fs.Glob(os.DirFS(filepath.Join(dir, "store-data")), "[^t]*")
			if n, _ := s.Len(ctx); len(files) != n+1 { // the lock
				return fmt.Errorf("there are %d files for %d keys: %w", len(files), n, err)
			}
			return nil
		},
	}
}

// Processes that share a directory lose no updates, even while others open and close it.
func TestProcessesShareADirectory(t *testing.T) {
	const dirEnv, processes, updates = "EPHEMERAL_FILE_DIR", 3, 30
	ctx := context.Background()
	add := func(s data.Store[string, int]) error {
		return s.Update(ctx, "count", func(n int, _ bool) (int, error) { return n + 1, nil })
	}
	if dir := os.Getenv(dirEnv); dir != "" {
		s := openStore(ctx, dir)
		for i := range updates {
			require.NoError(t, add(s))
			require.NoError(t, s.Save(ctx, fmt.Sprint(os.Getpid(), "-", i), i))
		}
		require.NoError(t, s.Close())
		return
	}
	dir := t.TempDir()
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			child := exec.Command(os.Args[0], "-test.run=^TestProcessesShareADirectory$")
			child.Env = append(os.Environ(), dirEnv+"="+dir)
			out, err := child.CombinedOutput()
			assert.NoError(t, err, string(out))
		})
	}
	for range updates {
		s := openStore(ctx, dir)
		require.NoError(t, add(s))
		require.NoError(t, s.Close())
	}
	all.Wait()
	s := openStore(ctx, dir)
	defer s.Close()
	n, _, err := s.Load(ctx, "count")
	require.NoError(t, err)
	assert.Equal(t, (processes+1)*updates, n)
	n, err = s.Len(ctx)
	require.NoError(t, err)
	assert.Equal(t, 1+processes*updates, n)
}
