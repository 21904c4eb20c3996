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
)

func open(t testing.TB, path string, opts ...sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, append(opts, sqlite.Options{})[0])
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	durabletest.Run(t, func(t testing.TB) durable.Store { return open(t, path) })
}
