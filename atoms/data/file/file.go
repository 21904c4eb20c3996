package file

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Open opens the store opts.Name in the directory dir. It creates missing directories, and removes
// temporary files that are older than an hour: killed processes have left them. If another process
// has the lock, Open waits for it until ctx ends. The store must be closed.
func Open[K ~string, V any](ctx context.Context, dir string, opts data.Options[V]) (data.Store[K, V], error) {
	name := cmp.Or(opts.Name, "data")
	if err := data.CheckName(name); err != nil {
		return nil, err
	}
	e, err := open(ctx, osDisk{}, dir, name)
	if err != nil {
		return nil, fmt.Errorf("file: store %q in %s: %w", name, dir, err)
	}
	store, err := data.New[K](e, opts)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return store, nil
}

// engine is the [data.Engine]: a directory with a file for each key. A value is written to a
// temporary file, which then replaces the earlier file. The lock is held while files are
// replaced or removed.
type engine struct {
	disk disk
	dir  string
	lock lock
}

// open opens the engine of the store with the given name below parent.
func open(ctx context.Context, d disk, parent, name string) (*engine, error) {
	e := &engine{disk: d, dir: filepath.Join(parent, "store-"+escape(name))}
	err := e.mkdir(e.dir)
	if err != nil {
		return nil, err
	}
	if e.lock, err = d.lock(e.path(lockName)); err != nil {
		return nil, err
	}
	if err := e.locked(ctx, e.clean); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *engine) path(name string) string { return filepath.Join(e.dir, name) }

// mkdir makes a directory and missing directories above it, durably.
func (e *engine) mkdir(dir string) error {
	above := filepath.Dir(dir)
	err := e.disk.mkdir(dir)
	if guard.Is(err, fs.ErrNotExist) && above != dir {
		if err = e.mkdir(above); err == nil {
			err = e.disk.mkdir(dir)
		}
	}
	if err == nil || guard.Is(err, fs.ErrExist) { // another process may not have synced it yet
		err = e.disk.syncDir(above)
	}
	return err
}

// clean removes temporary files that were written more than an hour ago: killed processes have
// left them.
func (e *engine) clean() error {
	files, err := e.disk.list(e.dir)
	for _, file := range files {
		if strings.HasPrefix(file.Name(), tempName) {
			if info, err := file.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
				e.disk.remove(e.path(file.Name()))
			}
		}
	}
	return err
}

// locked calls fn with the lock held. If ctx ends, the wait for the lock ends, but not fn.
func (e *engine) locked(ctx context.Context, fn func() error) error {
	release, err := e.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return fn()
}

func (e *engine) Save(ctx context.Context, items []data.Item) error {
	_, err := e.replace(ctx, items, func() (bool, error) { return true, nil })
	return err
}

func (e *engine) Swap(ctx context.Context, key string, old []byte, ok bool, value []byte) (bool, error) {
	return e.replace(ctx, []data.Item{{Key: key, Value: value}}, func() (bool, error) {
		now, there, err := e.get(key)
		return there == ok && bytes.Equal(now, old), err
	})
}

// replace writes items to temporary files. Then it takes the lock and calls check. If check
// returns true, the temporary files replace the earlier files, and replace returns true.
func (e *engine) replace(ctx context.Context, items []data.Item, check func() (bool, error)) (done bool, err error) {
	var temps []string
	for i := 0; i < len(items) && ctx.Err() == nil; i++ {
		temp := e.path(tempName + strings.ToLower(rand.Text()))
		defer e.disk.remove(temp) // does nothing if the file was renamed
		if err := e.write(temp, items[i]); err != nil {
			return false, err
		}
		temps = append(temps, temp)
	}
	err = e.locked(ctx, func() error { // is not called if ctx has ended
		if ok, err := check(); !ok || err != nil {
			return err
		}
		for i, temp := range temps {
			if err := e.disk.rename(temp, e.path(nameOf(items[i].Key))); err != nil {
				return undecided(err, i > 0)
			}
			done = true
		}
		return nil
	})
	if done && err == nil {
		err = undecided(e.disk.syncDir(e.dir), true)
	}
	return done, err
}

// undecided adds data.ErrUndecided to err if the change may have been made.
func undecided(err error, may bool) error {
	if err != nil && may {
		return fmt.Errorf("%w: %w", data.ErrUndecided, err)
	}
	return err
}

// write writes the file of an item durably.
func (e *engine) write(path string, item data.Item) error {
	f, err := e.disk.create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(append(headOf(item.Key, item.Value), item.Value...))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (e *engine) Load(ctx context.Context, key string) (value []byte, ok bool, err error) {
	err = e.reading(ctx, func() error { value, ok, err = e.get(key); return err })
	return value, ok, err
}

func (e *engine) Has(ctx context.Context, key string) (ok bool, err error) {
	err = e.reading(ctx, func() error { _, ok, err = e.read(nameOf(key), 0); return err })
	return ok, err
}

// reading calls fn, which reads a file. Windows cannot replace a file that is read.
func (e *engine) reading(ctx context.Context, fn func() error) error {
	if runtime.GOOS == "windows" {
		return e.locked(ctx, fn)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fn()
}

// read returns the first bytes of a file, and whether it is there.
func (e *engine) read(name string, most int64) ([]byte, bool, error) {
	file, err := e.disk.read(e.path(name), most)
	if guard.Is(err, fs.ErrNotExist) {
		return nil, false, e.disk.stat(e.dir) // nothing is known of a directory that was deleted
	}
	return file, err == nil, err
}

func (e *engine) get(key string) ([]byte, bool, error) {
	file, ok, err := e.read(nameOf(key), maxHead+data.MaxValue+1)
	if !ok {
		return nil, false, err
	}
	if whose, value, whole := parse(file); whole && whose == key {
		return value, true, nil
	}
	return nil, false, fmt.Errorf("file: %s is corrupt, or not the file of this key", e.path(nameOf(key)))
}

func (e *engine) Delete(ctx context.Context, key string) error {
	return e.removeAll(ctx, func() ([]string, error) { return []string{nameOf(key)}, nil })
}

func (e *engine) Clear(ctx context.Context) error { return e.removeAll(ctx, e.names) }

// removeAll removes the files whose names the function which returns.
func (e *engine) removeAll(ctx context.Context, which func() ([]string, error)) error {
	err := e.locked(ctx, func() error {
		names, err := which()
		for i, name := range names {
			if err := e.disk.remove(e.path(name)); err != nil && !guard.Is(err, fs.ErrNotExist) {
				return undecided(err, i > 0)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return undecided(e.disk.syncDir(e.dir), true)
}

// names returns the names of the files of values. The lock is held: if a file is replaced while
// the directory is read, the file may be found twice, or not at all.
func (e *engine) names() (names []string, err error) {
	files, err := e.disk.list(e.dir)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if _, ok := keyOf(file.Name()); ok {
			names = append(names, file.Name())
		}
	}
	return names, nil
}

func (e *engine) Len(ctx context.Context) (int, error) {
	var names []string
	err := e.locked(ctx, func() (err error) { names, err = e.names(); return err })
	return len(names), err
}

func (e *engine) List(ctx context.Context, prefix string, values bool) iter.Seq2[data.Item, error] {
	return func(yield func(data.Item, error) bool) {
		var keys []string
		err := e.locked(ctx, func() (err error) { keys, err = e.keys(prefix); return err })
		if err != nil {
			yield(data.Item{}, err)
			return
		}
		for _, key := range keys {
			item, ok := data.Item{Key: key}, true
			if values {
				item.Value, ok, err = e.Load(ctx, key)
			}
			if (ok || err != nil) && !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// keys returns the keys with the prefix, sorted. If a name is a hash, the key is in the file.
// The lock is held.
func (e *engine) keys(prefix string) (keys []string, err error) {
	names, err := e.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		key, _ := keyOf(name)
		if key == "" {
			file, err := e.disk.read(e.path(name), maxHead)
			if key, _, _ = parse(file); nameOf(key) != name {
				return nil, cmp.Or(err, fmt.Errorf("file: %s is corrupt: its first line does not have its key", e.path(name)))
			}
		}
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func (e *engine) Close() error { return e.lock.Close() }
