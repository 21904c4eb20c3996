package file

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// A power cut at any moment loses no acknowledged save, and leaves no half of one. That is
// tried with every state that a disk may have after it; and the test notices it if one of the
// syncs is left out.
func TestPowerCut(t *testing.T) {
	const nothing, file = "", "file"
	for _, forgotten := range []string{nothing, file, "/", "/a", "/a/b", "/a/b/store-data"} {
		t.Run("without sync of "+forgotten, func(t *testing.T) {
			d := &powerDisk{entries: map[string][]*node{"/": {{dir: true}}}, forgotten: forgotten}
			x := &powerTest{allowed: map[string][]string{}, states: map[string]bool{}}
			d.changed = func() { x.cut(d) }
			x.scenario(t, d)
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

// powerTest knows what must be on the disk.
type powerTest struct {
	allowed map[string][]string // values of a key that may be there; "" is none
	states  map[string]bool     // that have been checked
	wrong   []string
}

const absent = ""

func (x *powerTest) scenario(t *testing.T, d *powerDisk) {
	long := strings.Repeat("L", data.MaxKey)
	for round := range 2 {
		e, err := open(t.Context(), d, "/a/b", "data")
		require.NoError(t, err)
		save := func(text string, keys ...string) {
			var items []data.Item
			for _, key := range keys {
				x.begin(key, text)
				items = append(items, data.Item{Key: key, Value: []byte(text)})
			}
			require.NoError(t, e.Save(t.Context(), items))
			x.acknowledged(text, keys...)
		}
		save(fmt.Sprint("first", round), "A/b")
		save(fmt.Sprint("second", round), "A/b")
		save(fmt.Sprint("third", round), "A/b", "c", long)
		old, ok, err := e.Load(t.Context(), "c")
		require.NoError(t, err)
		x.begin("c", "swapped")
		swapped, err := e.Swap(t.Context(), "c", old, ok, []byte("swapped"))
		require.NoError(t, err)
		require.True(t, swapped)
		x.acknowledged("swapped", "c")
		x.begin(long, absent)
		require.NoError(t, e.Delete(t.Context(), long))
		x.acknowledged(absent, long)
		require.NoError(t, e.Close())
	}
}

func (x *powerTest) begin(key, text string) {
	if x.allowed[key] == nil {
		x.allowed[key] = []string{absent}
	}
	x.allowed[key] = append(x.allowed[key], text)
}

func (x *powerTest) acknowledged(text string, keys ...string) {
	for _, key := range keys {
		x.allowed[key] = []string{text}
	}
}

// cut checks all states that there may be if the power is cut now. After a hundred wrong
// ones there is no need for more.
func (x *powerTest) cut(d *powerDisk) {
	d.afterCut(func(left *powerDisk) bool {
		state := fmt.Sprint(left, x.allowed)
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
	ctx := context.Background()
	e, err := open(ctx, d, "/a/b", "data")
	if err != nil {
		return err
	}
	for key, allowed := range x.allowed {
		value, ok, err := e.Load(ctx, key)
		if err != nil {
			return err
		}
		if !slices.Contains(allowed, string(value)) || ok != (len(value) > 0) {
			return fmt.Errorf("%.10q: got %q, want one of %q", key, value, allowed)
		}
	}
	var keys []string
	for item, err := range e.List(ctx, "", true) {
		if err != nil {
			return err
		}
		keys = append(keys, item.Key)
	}
	if err := e.Close(); err != nil {
		return err
	}
	if files, err := d.list(e.dir); len(files) != len(keys)+1 { // and the lock
		return fmt.Errorf("there are %v for keys %q: %w", files, keys, err)
	}
	return nil
}

// powerDisk is a disk in memory. What has not been synced may be lost in a power cut,
// each file and each entry of a directory without the others, in any order.
type powerDisk struct {
	entries   map[string][]*node // by path: what is durable, and what has been there since; nil is nothing
	forgotten string             // what is not synced although the engine wants that
	changed   func()             // is called after each change
}

type node struct {
	dir     bool
	data    []byte
	durable bool // the data is
}

func (d *powerDisk) now(p string) *node {
	if history := d.entries[p]; len(history) > 0 {
		return history[len(history)-1]
	}
	return nil
}

func (d *powerDisk) put(p string, n *node) {
	if d.entries[p] == nil {
		d.entries[p] = []*node{nil}
	}
	d.entries[p] = append(d.entries[p], n)
}

func (d *powerDisk) change() {
	if d.changed != nil {
		d.changed()
	}
}

// String is the state, for comparison.
func (d *powerDisk) String() string {
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(d.entries)) {
		name := path.Base(p)
		if strings.HasPrefix(name, tempName) {
			name = name[:2] // the rest is random
		}
		if n := d.now(p); n != nil {
			fmt.Fprintf(&b, "%s/%s=%q\n", path.Dir(p), name, n.data)
		}
	}
	return b.String()
}

// afterCut calls visit with disks as they may be after a power cut, until that returns false.
func (d *powerDisk) afterCut(visit func(*powerDisk) bool) {
	paths := slices.Sorted(maps.Keys(d.entries)) // directories come before what is in them
	var choose func(i int, left map[string][]*node) bool
	choose = func(i int, left map[string][]*node) bool {
		if i == len(paths) {
			return visit(&powerDisk{entries: maps.Clone(left)})
		}
		p := paths[i]
		_, above := left[path.Dir(p)]
		tried := map[string]bool{}
		for _, n := range slices.Backward(d.entries[p]) {
			for _, content := range contents(n) {
				if id := fmt.Sprint(content); tried[id] {
					continue
				} else {
					tried[id] = true
				}
				delete(left, p)
				if content != nil && (above || p == "/") {
					left[p] = []*node{content}
				}
				if !choose(i+1, left) {
					return false
				}
			}
		}
		delete(left, p)
		return true
	}
	choose(0, map[string][]*node{})
}

// contents are what a file may have in it after a power cut.
func contents(n *node) []*node {
	if n == nil || n.dir || n.durable {
		return []*node{n}
	}
	all := []*node{}
	for _, data := range [][]byte{n.data, {}, n.data[:len(n.data)/2], n.data[:max(0, len(n.data)-1)], make([]byte, len(n.data))} {
		all = append(all, &node{data: bytes.Clone(data), durable: true})
	}
	return all
}

func (d *powerDisk) mkdir(dir string) error {
	if d.now(path.Dir(dir)) == nil {
		return fs.ErrNotExist
	}
	if d.now(dir) != nil {
		return fs.ErrExist
	}
	d.put(dir, &node{dir: true})
	d.change()
	return nil
}

// list says that all files are old.
func (d *powerDisk) list(dir string) ([]fs.DirEntry, error) {
	files := fstest.MapFS{}
	for p := range d.entries {
		if p != "/" && path.Dir(p) == dir && d.now(p) != nil {
			files[path.Base(p)] = &fstest.MapFile{}
		}
	}
	return files.ReadDir(".")
}

func (d *powerDisk) read(p string, most int64) ([]byte, error) {
	n := d.now(p)
	if n == nil {
		return nil, fs.ErrNotExist
	}
	return bytes.Clone(n.data[:min(len(n.data), int(most))]), nil
}

func (d *powerDisk) create(p string) (writer, error) {
	if d.now(path.Dir(p)) == nil || d.now(p) != nil {
		return nil, fs.ErrInvalid
	}
	n := &node{}
	d.put(p, n)
	d.change()
	return &powerFile{d, n}, nil
}

func (d *powerDisk) rename(from, to string) error {
	n := d.now(from)
	if n == nil {
		return fs.ErrNotExist
	}
	d.put(to, n)
	d.put(from, nil)
	d.change()
	return nil
}

func (d *powerDisk) remove(p string) error {
	if d.now(p) == nil {
		return fs.ErrNotExist
	}
	d.put(p, nil)
	d.change()
	return nil
}

func (d *powerDisk) syncDir(dir string) error {
	if d.now(dir) == nil {
		return fs.ErrNotExist
	}
	for p, history := range d.entries {
		if path.Dir(p) == dir && p != "/" && dir != d.forgotten {
			if d.entries[p] = history[len(history)-1:]; history[len(history)-1] == nil {
				delete(d.entries, p)
			}
		}
	}
	d.change()
	return nil
}

func (d *powerDisk) lock(p string) (lock, error) {
	if d.now(p) == nil {
		d.put(p, &node{durable: true})
		d.change()
	}
	return powerLock{}, nil
}

type powerFile struct {
	d *powerDisk
	n *node
}

func (f *powerFile) Write(p []byte) (int, error) {
	f.n.data = append(f.n.data, p...)
	f.n.durable = false
	f.d.change()
	return len(p), nil
}

func (f *powerFile) Sync() error {
	f.n.durable = f.d.forgotten != "file"
	f.d.change()
	return nil
}

func (f *powerFile) Close() error { return nil }

// powerLock is a lock of which there is one user.
type powerLock struct{}

func (powerLock) Acquire(context.Context) (release func(), err error) { return func() {}, nil }
func (powerLock) Close() error                                        { return nil }
