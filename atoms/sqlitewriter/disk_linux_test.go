package sqlitewriter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

// If the disk is full, the error says so. Acknowledged writes are stored, and the others are not.
// When there is room again, writes go on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("SKIPPED: A FULL DISK IS NOT TESTED. It needs the right to mount a tmpfs: ", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(dir, 0)) })
	w := openAt(t, filepath.Join(dir, "app.db"), sqlitewriter.Options{})
	t.Cleanup(func() { assert.NoError(t, w.Close()) }) // before the directory is unmounted
	execute(t, w, "create table log(id integer primary key, text text)")
	ballast := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 300<<10), 0o644))

	var acked []string
	failures := 0
	save := func(n, size int) {
		var waits []func() error
		var all []string
		for i := range n {
			text := fmt.Sprintf("%d.%d.%s", len(acked)+failures, i, strings.Repeat("x", size))
			all = append(all, text)
			waits = append(waits, begin(t.Context(), w, sqlitewriter.Statement{SQL: insert, Args: []any{text}}))
		}
		for i, wait := range waits {
			if err := wait(); err == nil {
				acked = append(acked, all[i])
			} else {
				require.ErrorIs(t, err, sqlitewriter.ErrNoSpace)
				require.ErrorContains(t, err, `sqlitewriter: "app.db": sqlitewriter: no space left for the database`)
				failures++
			}
		}
	}
	for failures < 100 {
		save(10, 2000)
	}
	assert.ElementsMatch(t, acked, texts(t, w.DB()))
	require.NotEmpty(t, acked)

	require.NoError(t, os.Remove(ballast))
	before := failures
	save(10, 2000)
	assert.Equal(t, before, failures, "there is room again")
	assert.ElementsMatch(t, acked, texts(t, w.DB()))
	require.NoError(t, w.Close())
	assert.ElementsMatch(t, acked, texts(t, openAt(t, w.Path(), sqlitewriter.Options{}).DB()))
}
