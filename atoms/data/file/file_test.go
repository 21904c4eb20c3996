package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/datatest"
)

func openIn(t testing.TB, dir string) *engine {
	e, err := open(t.Context(), osDisk{}, dir, "data")
	require.NoError(t, err)
	return e
}

func save(t testing.TB, e *engine, key, value string) {
	t.Helper()
	require.NoError(t, e.Save(t.Context(), []data.Item{{Key: key, Value: []byte(value)}}))
}

func namesIn(t testing.TB, dir string) []string {
	names, err := fs.Glob(os.DirFS(dir), "*")
	require.NoError(t, err)
	return names
}

func TestEngine(t *testing.T) {
	datatest.Run(t, func(t testing.TB) data.Engine { return openIn(t, t.TempDir()) }, datatest.Options{
		Partial: true,
		Reopen: func(t testing.TB, closed data.Engine) data.Engine {
			return openIn(t, filepath.Dir(closed.(*engine).dir))
		},
	})
}

// A name of a store cannot lead out of the directory, and names that differ in their case only
// have different directories.
func TestNamesOfStores(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"../x", "/x", "a/b", "a.b", ".", strings.Repeat("a", 64)} {
		_, err := Open[string](t.Context(), dir, data.Options[int]{Name: name})
		assert.ErrorContains(t, err, fmt.Sprintf("%q", name))
	}
	assert.Empty(t, namesIn(t, dir))
	for _, name := range []string{"orders", "Orders", "con", ""} {
		s, err := Open[string](t.Context(), filepath.Join(dir, "deep/er"), data.Options[int]{Name: name})
		require.NoError(t, err)
		require.NoError(t, s.Save(t.Context(), "k", 1))
		require.NoError(t, s.Close())
	}
	assert.Equal(t, []string{"store-%4frders", "store-con", "store-data", "store-orders"}, namesIn(t, filepath.Join(dir, "deep/er")))
	_, err := Open[string](t.Context(), dir, data.Options[int]{MaxConcurrency: -1})
	assert.ErrorContains(t, err, "MaxConcurrency")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	_, err = Open[string](t.Context(), filepath.Join(dir, "file"), data.Options[int]{})
	assert.ErrorContains(t, err, filepath.Join(dir, "file"))
}

// Only the user can read the saved files.
func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	e := openIn(t, t.TempDir())
	save(t, e, "a", "1")
	for name, want := range map[string]os.FileMode{"": os.ModeDir | 0o700, nameOf("a"): 0o600} {
		info, err := os.Stat(filepath.Join(e.dir, name))
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode())
	}
	require.NoError(t, e.Close())
}

// Names are safe on every file system, and can be turned back into keys.
func FuzzName(f *testing.F) {
	for _, key := range []string{"a", "a/b", "a_b", "A", "con", "nul.txt", "a.", "\xff\x00", strings.Repeat("a", 138), strings.Repeat("a", 139), strings.Repeat("A", 47), "%41", "h-"} {
		f.Add(key)
	}
	safe := regexp.MustCompile(`^(k-[a-z0-9_%-]{1,138}|h-[0-9a-f]{64})$`)
	f.Fuzz(func(t *testing.T, key string) {
		if key == "" {
			return
		}
		name := nameOf(key)
		assert.Regexp(t, safe, name)
		got, ok := keyOf(name)
		assert.True(t, ok)
		if strings.HasPrefix(name, plainName) {
			assert.Equal(t, key, got)
		}
		if got, ok := keyOf(key); ok && got != "" { // a foreign name has no key
			assert.Equal(t, key, nameOf(got))
		}
	})
}

// A file is accepted only if no byte has changed.
func FuzzFile(f *testing.F) {
	f.Add([]byte("ephemeral1 00000000 0 a\n"))
	f.Add(append(headOf("a b", []byte("value")), "value"...))
	f.Fuzz(func(t *testing.T, file []byte) {
		if key, value, whole := parse(file); whole {
			assert.Equal(t, string(file), string(headOf(key, value))+string(value))
		}
	})
}

// A damaged file causes an error that names the file and the key. It can be replaced and
// deleted. Other keys still work.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	s, err := Open[string](t.Context(), dir, data.Options[string]{Name: "orders"})
	require.NoError(t, err)
	defer s.Close()
	for _, key := range []string{"some key", strings.Repeat("L", data.MaxKey)} {
		require.NoError(t, s.Save(t.Context(), key, "value"))
		path := filepath.Join(dir, "store-orders", nameOf(key))
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		damaged := [][]byte{append(slices.Clone(whole), 'x'), append(headOf("other key", []byte(`"value"`)), `"value"`...)}
		for i := 0; i < len(whole); i += 1 + len(whole)/100 {
			flipped := slices.Clone(whole)
			flipped[i] ^= 1
			damaged = append(damaged, flipped, whole[:i])
		}
		for _, file := range append(damaged, whole[:5]) {
			require.NoError(t, os.WriteFile(path, file, 0o600))
			_, _, err := s.Load(t.Context(), key)
			require.ErrorContains(t, err, `data: store "orders": load "`+key[:8])
			require.ErrorContains(t, err, path+" is corrupt")
		}
		for _, err = range s.All(t.Context(), "") {
		}
		require.ErrorContains(t, err, path+" is corrupt")
		require.NoError(t, s.Save(t.Context(), "other", "value"))
		require.NoError(t, s.Delete(t.Context(), key))
		require.NoError(t, s.Save(t.Context(), key, "new"))
	}
}

// Foreign files are neither shown nor removed.
func TestForeignFiles(t *testing.T) {
	e := openIn(t, t.TempDir())
	save(t, e, "a", "1")
	foreign := []string{".DS_Store", "k-%41%4", "k-%4A", "k-A", "k-", "h-12", "notes.txt", "h-" + strings.Repeat("A", 64)}
	for _, name := range foreign {
		require.NoError(t, os.WriteFile(filepath.Join(e.dir, name), nil, 0o600))
	}
	n, err := e.Len(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	require.NoError(t, e.Clear(t.Context()))
	require.NoError(t, e.Close())
	assert.ElementsMatch(t, append(foreign, lockName), namesIn(t, e.dir))
}

// Temporary files of killed processes are removed. The files of running processes stay.
func TestStaleFiles(t *testing.T) {
	dir := t.TempDir()
	e := openIn(t, dir)
	for name, age := range map[string]time.Duration{"new": time.Minute, "old": 2 * time.Hour} {
		path := filepath.Join(e.dir, tempName+name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, time.Now().Add(-age), time.Now().Add(-age)))
	}
	second := openIn(t, dir)
	assert.Equal(t, []string{lockName, tempName + "new"}, namesIn(t, e.dir))
	require.NoError(t, errors.Join(e.Close(), second.Close()))
}

// A call that waits for a lock of another process ends with its context, and changes nothing.
func TestWaitForLockEndsWithContext(t *testing.T) {
	dir := t.TempDir()
	e, other := openIn(t, dir), openIn(t, dir)
	save(t, e, "a", "1")
	why := errors.New("enough")
	require.NoError(t, other.locked(t.Context(), func() error {
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() { result <- e.Save(ctx, []data.Item{{Key: "a", Value: []byte("2")}}) }()
		cancel(why)
		err := <-result
		assert.ErrorIs(t, err, why)
		assert.NotErrorIs(t, err, data.ErrUndecided)
		value, _, err := e.Load(t.Context(), "a") // readers do not wait
		assert.Equal(t, "1", string(value))
		return err
	}))
	save(t, e, "a", "3")
	assert.Len(t, namesIn(t, e.dir), 2, "no temporary file is left")
	require.NoError(t, errors.Join(e.Close(), other.Close()))
}

// Each call of the disk fails once. The error says whether the change may have been made, and no
// temporary file is left.
func TestErrorsOfTheDisk(t *testing.T) {
	errOnPurpose := errors.New("failed on purpose")
	const calls = 3 + 3 + 2 + 1 // create, write and sync, twice; rename, twice; syncDir
	for fails := range calls {
		d := newPowerDisk()
		e, err := open(t.Context(), d, "/", "data")
		require.NoError(t, err)
		save(t, e, "a", "old")
		call := -1
		d.before = func() error {
			if call++; call == fails {
				return errOnPurpose
			}
			return nil
		}
		err = e.Save(t.Context(), []data.Item{{Key: "a", Value: []byte("new")}, {Key: "b", Value: []byte("new")}})
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, fails >= 7, errors.Is(err, data.ErrUndecided))
		value, _, err := e.Load(t.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, fails >= 7, string(value) == "new")
		left, err := d.list(e.dir)
		require.NoError(t, err)
		assert.NotContains(t, fmt.Sprint(left), tempName)
	}
}

// After the directory of the store was deleted, nothing is "not there": every call is an error.
func TestDirectoryIsDeleted(t *testing.T) {
	dir := t.TempDir()
	e := openIn(t, dir)
	save(t, e, "a", "1")
	require.NoError(t, os.RemoveAll(e.dir))
	_, _, err := e.Load(t.Context(), "a")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = e.Has(t.Context(), "a")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = e.Swap(t.Context(), "a", nil, false, []byte("2"))
	assert.Error(t, err)
	assert.Error(t, e.Delete(t.Context(), "a"))
	_, err = e.Len(t.Context())
	assert.Error(t, err)
	for _, err := range e.List(t.Context(), "", true) {
		assert.Error(t, err)
	}
}
