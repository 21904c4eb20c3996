package sqlitewriter_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// open opens a file in a directory of the test.
func open(t testing.TB, opts sqlitewriter.Options) *sqlitewriter.Writer {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "app.db"), opts)
}

func openAt(t testing.TB, path string, opts sqlitewriter.Options) *sqlitewriter.Writer {
	t.Helper()
	w := core.Must(sqlitewriter.Open(context.Background(), path, opts))
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		w := open(t, sqlitewriter.Options{TxTimeout: -1})
		return coretest.Subject{
			Lifecycle: w,
			Submit: func(ctx context.Context, body coretest.Body) error {
				return w.Start(ctx, func(ctx context.Context, _ *sqlitewriter.Tx) error { return body(ctx) })
			},
		}
	})
}
