//go:build unix

package sqlitewriter_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

// A new file has the mode 0644, less the umask. The files beside a database have its mode.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	for name, c := range map[string]struct {
		is, want fs.FileMode
	}{
		"new": {want: 0o640}, "private": {is: 0o600, want: 0o600}, "group": {is: 0o660, want: 0o660},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			if c.is != 0 {
				require.NoError(t, os.WriteFile(path, nil, c.is))
				require.NoError(t, os.Chmod(path, c.is))
			}
			execute(t, openAt(t, path, sqlitewriter.Options{}), "create table log(x)")
			for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
				info, err := os.Stat(path + suffix)
				require.NoError(t, err)
				assert.Equal(t, c.want, info.Mode(), suffix)
			}
		})
	}
}
