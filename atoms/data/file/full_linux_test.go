package file

import (
	"bytes"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// On a full disk, Save returns an error, and present values stay.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: a full disk: only root can mount one")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("NOT TESTED: a full disk: ", err)
	}
	defer syscall.Unmount(dir, 0)
	e := openIn(t, dir)
	item := func(key string, size int) []data.Item {
		return []data.Item{{Key: key, Value: bytes.Repeat([]byte("x"), size)}}
	}
	require.NoError(t, e.Save(t.Context(), item("a", 400_000)))
	before := namesIn(t, e.dir)
	for range 3 {
		err := e.Save(t.Context(), item("a", 700_000))
		assert.ErrorIs(t, err, syscall.ENOSPC)
		assert.NotErrorIs(t, err, data.ErrUndecided)
	}
	assert.Equal(t, before, namesIn(t, e.dir), "nothing is left over")
	value, _, err := e.Load(t.Context(), "a")
	require.NoError(t, err)
	assert.Len(t, value, 400_000)
	require.NoError(t, e.Save(t.Context(), item("a", 500_000)))
	require.NoError(t, e.Close())
}
