package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

func open(t testing.TB, path string, opts sqlite.Options) (*sqlite.Store, *sqlitewriter.Writer) {
	t.Helper()
	w, err := sqlitewriter.Open(context.Background(), path, sqlitewriter.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	s, err := sqlite.Open(context.Background(), w, opts)
	require.NoError(t, err)
	return s, w
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	durabletest.Run(t, func(t testing.TB) durable.Store { s, _ := open(t, path, sqlite.Options{}); return s })
}
