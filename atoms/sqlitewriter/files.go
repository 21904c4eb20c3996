package sqlitewriter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// files are the files that are open in this process.
var files = struct {
	mu   sync.Mutex
	open map[string]*entry // by path: absolute, without symbolic links
}{open: make(map[string]*entry)}

// entry is a file with the number of its handles.
type entry struct {
	place   string
	handles int           // guarded by the lock of files
	gate    chan struct{} // has a value while one goroutine opens or closes the file
	shared  *file         // nil: it is closed
}

// acquire returns the entry of a path with one more handle and an open file.
func acquire(ctx context.Context, path string, given Options) (*entry, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	opts, err := given.resolved(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	e := enter(path)
	select {
	case e.gate <- struct{}{}:
	case <-ctx.Done():
		go e.release() // which may have to wait for the one that opens or closes
		return nil, context.Cause(ctx)
	}
	switch {
	case e.shared == nil:
		e.shared, err = openFile(ctx, e.place, opts)
	case given != Options{} && opts != e.shared.opts:
		err = fmt.Errorf("sqlitewriter: it is open with other Options: %+v, not %+v", e.shared.opts, opts)
	}
	<-e.gate
	if err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

// resolve finds a file, or makes it. It does not open a file that exists: to close it again
// would release the locks that SQLite has on it.
func resolve(path string) (string, error) {
	if path == "" || path == ":memory:" || strings.HasPrefix(path, "file:") {
		return "", errors.New("sqlitewriter: the path must be that of a file, not a connection string or a database in memory")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
		_ = made.Close() // it is empty
	}
	return filepath.EvalSymlinks(path)
}

// enter counts a handle of a file.
func enter(path string) *entry {
	files.mu.Lock()
	defer files.mu.Unlock()
	e := files.open[path]
	if e == nil {
		e = &entry{place: path, gate: make(chan struct{}, 1)}
		files.open[path] = e
	}
	e.handles++
	return e
}

// release ends a handle. The last one closes the file.
func (e *entry) release() {
	e.gate <- struct{}{}
	files.mu.Lock()
	e.handles--
	last := e.handles == 0
	files.mu.Unlock()
	if last && e.shared != nil {
		e.shared.shut()
		e.shared = nil
	}
	files.mu.Lock()
	if e.handles == 0 { // still
		delete(files.open, e.place)
	}
	files.mu.Unlock()
	<-e.gate
}
