package sqlite_test

import (
	"cmp"
	"context"
	"path/filepath"
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

func TestResult(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	here, w := open(t, path, sqlite.Options{})
	there, _ := open(t, path, sqlite.Options{})
	durabletest.Results(t, here, there, func(ctx context.Context, rollBack error) error {
		return w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error { return cmp.Or(sqlite.Finish(ctx, tx), rollBack) })
	})
}
