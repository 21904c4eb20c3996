package sqlitewriter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ephemeralgo/ephemeral/core/filelock"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// files are the files that are open in this process.
var files = struct {
	mu   sync.Mutex
	open map[string]*file // by absolute path without symbolic links
}{open: make(map[string]*file)}

// acquire returns the file of a path with one more handle.
func acquire(ctx context.Context, path string, given Options) (*file, error) {
	opts, err := given.resolved()
	if err != nil {
		return nil, err
	}
	path, info, err := resolve(path)
	if err != nil {
		return nil, err
	}
	opts.Name = cmp.Or(opts.Name, filepath.Base(path))
	lock, err := filelock.Open(path + ".lock")
	if err != nil {
		return nil, err
	}
	files.mu.Lock()
	f := files.open[path]
	if f == nil {
		f = newFile(path, info, opts, lock)
		files.open[path] = f
	}
	f.handles++
	files.mu.Unlock()
	if f.lock != lock {
		_ = lock.Close() // the file has a lock already
	}
	if given != (Options{}) && opts != f.opts {
		err = fmt.Errorf("sqlitewriter: it is open with other Options: %+v, not %+v", f.opts, opts)
	} else if !f.opened.Load() {
		err = f.firstConnect(ctx)
	}
	if err != nil {
		f.release()
		return nil, err
	}
	return f, nil
}

// resolve finds a file and its lock file, or makes them. It does not open a file that exists: to
// close it again would release the locks that SQLite has on it.
func resolve(path string) (_ string, info os.FileInfo, err error) {
	if path == "" || path == ":memory:" || strings.HasPrefix(path, "file:") {
		return "", nil, errors.New("sqlitewriter: the path must be that of a file, not a connection string or a database in memory")
	}
	if path, err = filepath.Abs(path); err == nil {
		err = create(path, 0)
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err == nil {
		info, err = os.Stat(path)
	}
	if err == nil {
		err = create(path+".lock", info.Mode().Perm())
	}
	return path, info, err
}

// create makes a file if there is none. If mode is 0, the umask applies.
func create(path string, mode fs.FileMode) error {
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, cmp.Or(mode, 0o644))
	if err == nil && mode != 0 {
		err = made.Chmod(mode)
	}
	_ = made.Close() // made is empty or nil
	if guard.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// firstConnect checks that a file can be opened.
func (f *file) firstConnect(ctx context.Context) error {
	unlock, err := f.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	f.patience = f.opts.BusyTimeout
	return f.explain(ctx, f.connect(ctx))
}

// release ends a handle. The last one closes the file. If the file is opened again meanwhile,
// the locks separate the two, as if they were in two processes.
func (f *file) release() {
	files.mu.Lock()
	f.handles--
	last := f.handles == 0
	if last {
		delete(files.open, f.path)
	}
	files.mu.Unlock()
	if last {
		f.shut()
	}
}
