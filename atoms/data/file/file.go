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
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// Open opens the store of the name in opts below dir, and makes the directories that are
// missing. It removes what processes that were killed have left over. If another process
// opens or writes at the moment, it waits for that until ctx ends. The store must be closed.
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

// engine is the [data.Engine]: a directory with a file for each key. A value is written to
// a temporary file first, which then replaces the one before. While files are replaced
// and removed, and nobody else may do that, the lock is held.
type engine struct {
	disk disk
	dir  string
	id   string        // of this engine, in names
	temp atomic.Uint64 // number of the last temporary file
	turn chan struct{} // has a value while the lock is held, or waited for, by a goroutine of this engine
	lock locker        // is that of the store
	self locker        // says to others that this engine is alive
}

func open(ctx context.Context, d disk, parent, name string) (*engine, error) {
	e := &engine{
		disk: d, dir: filepath.Join(parent, "store-"+escape(name)),
		id: strings.ToLower(rand.Text()), turn: make(chan struct{}, 1),
	}
	if err := e.mkdir(e.dir); err != nil {
		return nil, err
	}
	var err error
	if e.lock, err = d.openLock(filepath.Join(e.dir, lockName)); err != nil {
		return nil, err
	}
	err = e.locked(ctx, func() error {
		if err := e.clean(); err != nil {
			return err
		}
		if e.self, err = d.openLock(filepath.Join(e.dir, ownerName+e.id)); err != nil {
			return err
		}
		_, err := e.self.lock(true)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// mkdir makes a directory, with those above it, durably.
func (e *engine) mkdir(dir string) error {
	above := filepath.Dir(dir)
	err := e.disk.mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) && above != dir {
		if err := e.mkdir(above); err != nil {
			return err
		}
		err = e.disk.mkdir(dir)
	}
	if err == nil || errors.Is(err, fs.ErrExist) && dir == e.dir { // another process may not have synced yet
		err = e.disk.syncDir(above)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// clean removes the files of engines that are not alive. The lock is held.
func (e *engine) clean() error {
	names, err := e.disk.names(e.dir)
	alive := map[string]bool{}
	for _, name := range names {
		if id, owner := strings.CutPrefix(name, ownerName); owner && err == nil {
			alive[id], err = e.alive(name)
		}
	}
	for _, name := range names {
		rest, temp := strings.CutPrefix(name, tempName)
		if id, _, _ := strings.Cut(rest, "-"); temp && err == nil && !alive[id] {
			err = e.remove(name)
		}
	}
	return err
}

// alive reports whether the engine with this file is alive, and removes the file if not.
func (e *engine) alive(name string) (bool, error) {
	self, err := e.disk.openLock(filepath.Join(e.dir, name))
	if err != nil {
		return false, err
	}
	dead, err := self.lock(false)
	if err = errors.Join(err, self.Close()); dead && err == nil {
		err = e.remove(name)
	}
	return !dead, err
}

// remove removes a file, if it is there.
func (e *engine) remove(name string) error {
	err := e.disk.remove(filepath.Join(e.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// locked calls fn with the lock held. Only waiting for the lock ends with ctx: then a
// goroutine goes on waiting, and unlocks, since no system call waits for both.
func (e *engine) locked(ctx context.Context, fn func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	locked := make(chan error, 1)
	go func() {
		_, err := e.lock.lock(true)
		locked <- err
	}()
	select {
	case err := <-locked:
		defer e.unlock()
		if err != nil {
			return err
		}
		return fn()
	case <-ctx.Done():
		go func() {
			<-locked
			e.unlock()
		}()
		return context.Cause(ctx)
	}
}

func (e *engine) unlock() {
	e.lock.unlock()
	<-e.turn
}

func (e *engine) Save(ctx context.Context, items []data.Item) error {
	_, err := e.replace(ctx, items, func() (bool, error) { return true, nil })
	return err
}

func (e *engine) Swap(ctx context.Context, key string, old []byte, ok bool, value []byte) (bool, error) {
	now, there, err := e.Load(ctx, key)
	if err != nil || there != ok || !bytes.Equal(now, old) {
		return false, err
	}
	return e.replace(ctx, []data.Item{{Key: key, Value: value}}, func() (bool, error) {
		now, there, err := e.get(key)
		return there == ok && bytes.Equal(now, old), err
	})
}

// replace writes items to temporary files, which then replace those before, if check still
// says so. It reports whether they did.
func (e *engine) replace(ctx context.Context, items []data.Item, check func() (bool, error)) (done bool, err error) {
	var temps []string
	defer func() {
		for _, temp := range temps {
			e.remove(temp)
		}
	}()
	for _, item := range items {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		temps = append(temps, tempName+e.id+"-"+strconv.FormatUint(e.temp.Add(1), 10))
		if err := e.write(temps[len(temps)-1], item); err != nil {
			return false, err
		}
	}
	err = e.locked(ctx, func() error {
		if ok, err := check(); !ok || err != nil {
			return err
		}
		for i, item := range items {
			if err := e.disk.rename(filepath.Join(e.dir, temps[0]), filepath.Join(e.dir, nameOf(item.Key))); err != nil {
				return undecided(err, i > 0)
			}
			temps, done = temps[1:], true
		}
		return nil
	})
	if err != nil || !done {
		return false, err
	}
	return true, undecided(e.disk.syncDir(e.dir), true)
}

// undecided says that the change may have been made, if it may, in spite of err.
func undecided(err error, may bool) error {
	if err != nil && may {
		return fmt.Errorf("%w: %w", data.ErrUndecided, err)
	}
	return err
}

// write writes the file of an item durably.
func (e *engine) write(name string, item data.Item) error {
	f, err := e.disk.create(filepath.Join(e.dir, name))
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
	err = e.reading(ctx, func() error {
		value, ok, err = e.get(key)
		return err
	})
	return value, ok, err
}

func (e *engine) Has(ctx context.Context, key string) (ok bool, err error) {
	err = e.reading(ctx, func() error {
		_, ok, err = e.read(nameOf(key), 0)
		return err
	})
	return ok, err
}

// reading calls fn, which reads a file.
func (e *engine) reading(ctx context.Context, fn func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if readsLock {
		return e.locked(ctx, fn)
	}
	return fn()
}

// read returns the first bytes of a file, and whether it is there.
func (e *engine) read(name string, most int64) ([]byte, bool, error) {
	file, err := e.disk.read(filepath.Join(e.dir, name), most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return file, err == nil, err
}

func (e *engine) get(key string) ([]byte, bool, error) {
	file, ok, err := e.read(nameOf(key), maxHead+data.MaxValue+1)
	if !ok {
		return nil, false, err
	}
	value, ok := parse(file, key)
	if !ok {
		err = fmt.Errorf("file: %s is corrupt, or not the file of this key", filepath.Join(e.dir, nameOf(key)))
	}
	return value, ok, err
}

func (e *engine) Delete(ctx context.Context, key string) error {
	return e.removeAll(ctx, func() ([]string, error) { return []string{nameOf(key)}, nil })
}

func (e *engine) Clear(ctx context.Context) error {
	return e.removeAll(ctx, e.names)
}

// removeAll removes the files that which returns.
func (e *engine) removeAll(ctx context.Context, which func() ([]string, error)) error {
	err := e.locked(ctx, func() error {
		names, err := which()
		for i, name := range names {
			if err := e.remove(name); err != nil {
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

// names returns the names of the files of values. The lock is held: a file that is replaced
// while a directory is read may be in it twice, or not at all.
func (e *engine) names() ([]string, error) {
	names, err := e.disk.names(e.dir)
	return slices.DeleteFunc(names, func(name string) bool { _, ok := keyOf(name); return !ok }), err
}

func (e *engine) namesNow(ctx context.Context) (names []string, err error) {
	err = e.locked(ctx, func() (err error) { names, err = e.names(); return err })
	return names, err
}

func (e *engine) Len(ctx context.Context) (int, error) {
	names, err := e.namesNow(ctx)
	return len(names), err
}

func (e *engine) List(ctx context.Context, prefix string, values bool) iter.Seq2[data.Item, error] {
	return func(yield func(data.Item, error) bool) {
		keys, err := e.keys(ctx, prefix)
		if err != nil {
			yield(data.Item{}, err)
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

// keys returns the keys with the prefix, sorted.
func (e *engine) keys(ctx context.Context, prefix string) (keys []string, err error) {
	names, err := e.namesNow(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		key, _ := keyOf(name)
		if key == "" {
			if key, err = e.keyIn(ctx, name); err != nil {
				return nil, err
			}
		}
		if key != "" && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// keyIn returns the key in a file whose name does not say it; "" if it is not there any more.
func (e *engine) keyIn(ctx context.Context, name string) (key string, err error) {
	err = e.reading(ctx, func() error {
		file, ok, err := e.read(name, maxHead)
		if !ok {
			return err
		}
		if key, ok = parseKey(file); !ok || nameOf(key) != name {
			return fmt.Errorf("file: %s is corrupt: its first line does not have its key", filepath.Join(e.dir, name))
		}
		return nil
	})
	return key, err
}

func (e *engine) Close() error {
	err := e.lock.Close()
	if e.self != nil {
		err = errors.Join(err, e.self.Close(), e.remove(ownerName+e.id))
	}
	return err
}
