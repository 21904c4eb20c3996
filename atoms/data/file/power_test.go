package file

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

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
