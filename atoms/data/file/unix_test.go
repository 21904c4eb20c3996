//go:build unix

package file

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If the path of a key is no regular file, the error says so. It is not opened, because that could
// wait for ever. Save replaces it if the system allows that.
func TestIrregularFiles(t *testing.T) {
	for kind, make := range map[string]func(path string) error{
		"p": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"d": func(path string) error { return os.Mkdir(path, 0o700) },
		"S": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
		"D": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		for _, key := range []string{"a", "A very long key, the name of which is a hash, is read to list the keys: AAAAAAAAAA"} {
			dir, err := os.MkdirTemp("", "f") // the path of a socket must be short
			require.NoError(t, err)
			defer os.RemoveAll(dir)
			e := openIn(t, dir)
			path := filepath.Join(e.dir, nameOf(key))
			require.NoError(t, make(path))
			want := path + " is not a regular file, but " + kind
			_, _, err = e.Load(t.Context(), key)
			assert.ErrorContains(t, err, want)
			_, err = e.Has(t.Context(), key)
			assert.ErrorContains(t, err, want)
			_, err = e.Swap(t.Context(), key, nil, false, nil)
			assert.ErrorContains(t, err, want)
			for _, err = range e.List(t.Context(), "", true) {
			}
			assert.ErrorContains(t, err, want)
			if kind != "d" {
				save(t, e, key, "1")
				value, _, err := e.Load(t.Context(), key)
				require.NoError(t, err)
				assert.Equal(t, "1", string(value))
			}
			require.NoError(t, e.Close())
		}
	}
}

// Files have the permissions of the directory of the store, whatever the umask is.
func TestModesAreThoseOfTheDirectory(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "store-data"), 0))
	require.NoError(t, os.Chmod(filepath.Join(dir, "store-data"), 0o770))
	e := openIn(t, dir)
	save(t, e, "a", "1")
	for _, name := range []string{nameOf("a"), lockName} {
		info, err := os.Stat(e.path(name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o660), info.Mode(), name)
	}
	require.NoError(t, e.Close())
}
