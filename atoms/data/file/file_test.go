package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/datatest"
	"github.com/ephemeralgo/ephemeral/core"
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

// A power cut at any moment loses no acknowledged save, and leaves no partial one. The test
// tries every state that a disk may have after the cut. It fails if one of the syncs is left
// out.
func TestPowerCut(t *testing.T) {
	const nothing, file = "", "file"
	for _, forgotten := range []string{nothing, file, "/", "/a", "/a/b", "/a/b/store-data"} {
		t.Run("without sync of "+forgotten, func(t *testing.T) {
			d := newPowerDisk()
			d.forgotten = forgotten
			x := &powerTest{allowed: map[string][]string{"A/b": {""}, "c": {""}, long: {""}}, states: map[string]bool{}}
			d.before = func() error { x.cut(d); return nil }
			x.scenario(t, d)
			x.cut(d)
			t.Logf("%d states, of which %d are wrong", len(x.states), len(x.wrong))
			if forgotten == nothing {
				assert.Empty(t, x.wrong)
				assert.Greater(t, len(x.states), 100)
			} else {
				assert.NotEmpty(t, x.wrong)
			}
		})
	}
}

// powerTest knows which values must be on the disk.
type powerTest struct {
	allowed map[string][]string // values of a key that may be there; "" is none
	states  map[string]bool     // states that have been checked
	wrong   []string
}

func (x *powerTest) scenario(t *testing.T, d *powerDisk) {
	for round := range 2 {
		e, err := open(t.Context(), d, "/a/b", "data")
		require.NoError(t, err)
		call := func(text string, fn func() error, keys ...string) {
			for _, key := range keys {
				x.allowed[key] = append(x.allowed[key], text)
			}
			require.NoError(t, fn())
			for _, key := range keys {
				x.allowed[key] = []string{text}
			}
		}
		save := func(text string, keys ...string) {
			var items []data.Item
			for _, key := range keys {
				items = append(items, data.Item{Key: key, Value: []byte(text)})
			}
			call(text, func() error { return e.Save(t.Context(), items) }, keys...)
		}
		save(fmt.Sprint("first", round), "A/b")
		save(fmt.Sprint("second", round), "A/b")
		save(fmt.Sprint("third", round), "A/b", "c", long)
		call("swapped", func() error {
			swapped, err := e.Swap(t.Context(), "c", []byte(fmt.Sprint("third", round)), true, []byte("swapped"))
			assert.True(t, swapped)
			return err
		}, "c")
		call("", func() error { return e.Delete(t.Context(), long) }, long)
		require.NoError(t, e.Close())
	}
}

var long = strings.Repeat("L", data.MaxKey)

var random = regexp.MustCompile(tempName + "[a-z0-9]+")

// cut checks all states that the disk may have if the power is cut now. It stops after a
// hundred wrong ones.
func (x *powerTest) cut(d *powerDisk) {
	d.afterCut(func(left *powerDisk) bool {
		state := random.ReplaceAllString(fmt.Sprint(left.entries, x.allowed), tempName)
		if !x.states[state] {
			x.states[state] = true
			if err := x.check(left); err != nil {
				x.wrong = append(x.wrong, err.Error())
			}
		}
		return len(x.wrong) < 100
	})
}

func (x *powerTest) check(d *powerDisk) error {
	e, err := open(context.Background(), d, "/a/b", "data")
	if err != nil {
		return err
	}
	got := map[string]string{}
	for item, err := range e.List(context.Background(), "", true) {
		if err != nil {
			return err
		}
		got[item.Key] = string(item.Value)
	}
	for key, allowed := range x.allowed {
		if !slices.Contains(allowed, got[key]) {
			return fmt.Errorf("%.10q: got %q, want one of %q", key, got[key], allowed)
		}
	}
	if files, err := d.list(e.dir); len(files) != len(got)+1 { // and the lock
		return fmt.Errorf("there are %v for %q: %w", files, got, err)
	}
	return e.Close()
}

// powerDisk is a disk in memory, with its lock. A power cut may lose any data that was not
// synced: each file and each entry of a directory by itself.
type powerDisk struct {
	entries   map[string][]node // by path: the durable node, and the later ones
	forgotten string            // a sync that is left out on purpose
	before    func() error      // is called before each change, which fails with its error
}

func newPowerDisk() *powerDisk {
	return &powerDisk{entries: map[string][]node{"/": {{dir: true}}}, before: func() error { return nil }}
}

// The zero node is none.
type node struct {
	dir, file bool
	data      string
	durable   bool // the data is
}

func (d *powerDisk) now(p string) node {
	all := append([]node{{}}, d.entries[p]...)
	return all[len(all)-1]
}

// put makes n the present entry; it is not durable yet.
func (d *powerDisk) put(p string, n node) error {
	if err := d.before(); err != nil {
		return err
	}
	if d.entries[p] == nil {
		d.entries[p] = []node{{}}
	}
	d.entries[p] = append(d.entries[p], n)
	return nil
}

// afterCut calls visit with each disk that a power cut may leave, until visit returns false.
func (d *powerDisk) afterCut(visit func(*powerDisk) bool) {
	paths := slices.Sorted(maps.Keys(d.entries)) // directories come before their contents
	left := map[string][]node{}
	var choose func(i int) bool
	choose = func(i int) bool {
		if i == len(paths) {
			after := newPowerDisk()
			after.entries = maps.Clone(left)
			return visit(after)
		}
		var tried []node
		for _, n := range slices.Backward(d.entries[paths[i]]) {
			for _, content := range n.contents() {
				if slices.Contains(tried, content) {
					continue
				}
				tried = append(tried, content)
				delete(left, paths[i])
				if _, above := left[path.Dir(paths[i])]; content != (node{}) && (above || i == 0) {
					left[paths[i]] = []node{content}
				}
				if !choose(i + 1) {
					return false
				}
			}
		}
		delete(left, paths[i])
		return true
	}
	choose(0)
}

// contents returns what a file may contain after a power cut.
func (n node) contents() (all []node) {
	if !n.file || n.durable {
		return []node{n}
	}
	for _, data := range []string{n.data, "", n.data[:len(n.data)/2], n.data[:max(0, len(n.data)-1)], strings.Repeat("\x00", len(n.data))} {
		all = append(all, node{file: true, data: data, durable: true})
	}
	return all
}

func (d *powerDisk) mkdir(dir string) error {
	switch {
	case d.now(path.Dir(dir)) == node{}:
		return fs.ErrNotExist
	case d.now(dir) != node{}:
		return fs.ErrExist
	}
	return d.put(dir, node{dir: true})
}

func (d *powerDisk) stat(dir string) error {
	if d.now(dir) == (node{}) {
		return fs.ErrNotExist
	}
	return nil
}

// list says that all files are old.
func (d *powerDisk) list(dir string) ([]fs.DirEntry, error) {
	files := fstest.MapFS{}
	for p := range d.entries {
		if p != "/" && path.Dir(p) == dir && d.now(p) != (node{}) {
			files[path.Base(p)] = &fstest.MapFile{}
		}
	}
	return files.ReadDir(".")
}

func (d *powerDisk) read(p string, most int64) ([]byte, error) {
	n := d.now(p)
	if !n.file {
		return nil, fs.ErrNotExist
	}
	return []byte(n.data[:min(len(n.data), int(most))]), nil
}

func (d *powerDisk) create(p string) (writer, error) {
	return powerFile{d, p}, d.put(p, node{file: true})
}

func (d *powerDisk) rename(from, to string) error {
	if err := d.put(to, d.now(from)); err != nil {
		return err
	}
	d.entries[from] = append(d.entries[from], node{})
	return nil
}

func (d *powerDisk) remove(p string) error {
	if !d.now(p).file {
		return fs.ErrNotExist
	}
	return d.put(p, node{})
}

func (d *powerDisk) syncDir(dir string) error {
	if err := d.before(); err != nil {
		return err
	}
	for p := range d.entries {
		if path.Dir(p) == dir && p != "/" && dir != d.forgotten {
			d.entries[p] = []node{d.now(p)}
		}
	}
	return nil
}

func (d *powerDisk) lock(p string) (lock, error) {
	if d.now(p).file {
		return d, nil
	}
	return d, d.put(p, node{file: true, durable: true})
}

func (d *powerDisk) Acquire(context.Context) (release func(), err error) { return func() {}, nil }
func (d *powerDisk) Close() error                                        { return nil }

type powerFile struct {
	d    *powerDisk
	path string
}

func (f powerFile) set(n node) error {
	if err := f.d.before(); err != nil {
		return err
	}
	all := f.d.entries[f.path]
	all[len(all)-1] = n
	return nil
}

func (f powerFile) Write(p []byte) (int, error) {
	return len(p), f.set(node{file: true, data: f.d.now(f.path).data + string(p)})
}

func (f powerFile) Sync() error {
	return f.set(node{file: true, data: f.d.now(f.path).data, durable: f.d.forgotten != "file"})
}

func (f powerFile) Close() error { return nil }

func openStore(ctx context.Context, dir string) data.Store[string, int] {
	return core.Must(Open[string](ctx, dir, data.Options[int]{}))
}

// Processes that share a directory lose no updates, even while others open and close it.
func TestProcessesShareADirectory(t *testing.T) {
	const dirEnv, processes, updates = "EPHEMERAL_FILE_DIR", 3, 30
	ctx := context.Background()
	add := func(s data.Store[string, int]) error {
		return s.Update(ctx, "count", func(n int, _ bool) (int, error) { return n + 1, nil })
	}
	if dir := os.Getenv(dirEnv); dir != "" {
		s := openStore(ctx, dir)
		for i := range updates {
			require.NoError(t, add(s))
			require.NoError(t, s.Save(ctx, fmt.Sprint(os.Getpid(), "-", i), i))
		}
		require.NoError(t, s.Close())
		return
	}
	dir := t.TempDir()
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			child := exec.Command(os.Args[0], "-test.run=^TestProcessesShareADirectory$")
			child.Env = append(os.Environ(), dirEnv+"="+dir)
			out, err := child.CombinedOutput()
			assert.NoError(t, err, string(out))
		})
	}
	for range updates {
		s := openStore(ctx, dir)
		require.NoError(t, add(s))
		require.NoError(t, s.Close())
	}
	all.Wait()
	s := openStore(ctx, dir)
	defer s.Close()
	n, _, err := s.Load(ctx, "count")
	require.NoError(t, err)
	assert.Equal(t, (processes+1)*updates, n)
	n, err = s.Len(ctx)
	require.NoError(t, err)
	assert.Equal(t, 1+processes*updates, n)
}
