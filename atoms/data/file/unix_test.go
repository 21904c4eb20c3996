//go:build unix

package file

import (
	"cmp"
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

// Only the user can read the saved files. If the directory of the store was there, files have its
// permissions. The umask changes neither.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	for there, want := range map[os.FileMode]os.FileMode{0: 0o600, 0o770: 0o660} {
		dir := t.TempDir()
		if store := filepath.Join(dir, "store-data"); there != 0 {
			require.NoError(t, os.Mkdir(store, 0))
			require.NoError(t, os.Chmod(store, there))
		}
		e := openIn(t, dir)
		save(t, e, "a", "1")
		for name, want := range map[string]os.FileMode{"": os.ModeDir | cmp.Or(there, 0o700), nameOf("a"): want, lockName: want} {
			info, err := os.Stat(e.path(name))
			require.NoError(t, err)
			assert.Equal(t, want, info.Mode(), name)
		}
		require.NoError(t, e.Close())
	}
}
