package sqlitewriter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// files are the files that are open in this process.
var files struct {
	mu   sync.Mutex
	open []*entry
}

// entry is a file with the number of its handles.
type entry struct {
	path    string // absolute, without symbolic links
	info    os.FileInfo
	handles int           // guarded by the lock of files
	gate    chan struct{} // has a value while one goroutine opens or closes the file
	file    *file         // nil: it is closed
}

// acquire returns the entry of a path with one more handle and an open file.
func acquire(ctx context.Context, path string, given Options) (*entry, error) {
	path, info, err := resolve(path)
	if err != nil {
		return nil, err
	}
	opts := given.resolved(filepath.Base(path))
	e := enter(path, info)
	select {
	case e.gate <- struct{}{}:
	case <-ctx.Done():
		go e.leave() // which may have to wait for the one that opens or closes
		return nil, context.Cause(ctx)
	}
	switch {
	case e.file == nil:
		e.file, err = openFile(ctx, e.path, opts)
	case given != Options{} && opts != e.file.opts:
		err = fmt.Errorf("sqlitewriter: %q is open with other Options: %+v, not %+v", e.path, e.file.opts, opts)
	}
	<-e.gate
	if err != nil {
		e.leave()
		return nil, err
	}
	return e, nil
}

// resolve finds a file, or makes it. It does not open a file that exists: to close it again
// would release the locks that SQLite has on it.
func resolve(path string) (string, os.FileInfo, error) {
	if path == "" || path == ":memory:" || strings.HasPrefix(path, "file:") {
		return "", nil, fmt.Errorf("sqlitewriter: the path is %q, but must be that of a file, not a connection string or a database in memory", path)
	}
	path, err := filepath.Abs(path)
	if err == nil {
		var made *os.File
		if made, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
			err = made.Close()
		} else if errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", path)
	}
	if err != nil {
		return "", nil, fmt.Errorf("sqlitewriter: open: %w", err)
	}
	return path, info, nil
}

// enter counts a handle of a file.
func enter(path string, info os.FileInfo) *entry {
	files.mu.Lock()
	defer files.mu.Unlock()
	e := find(info)
	if e == nil {
		e = &entry{path: path, info: info, gate: make(chan struct{}, 1)}
		files.open = append(files.open, e)
	}
	e.handles++
	return e
}

// find returns the entry of a file, whatever its name is; nil if there is none.
func find(info os.FileInfo) *entry {
	for _, e := range files.open {
		if os.SameFile(e.info, info) {
			return e
		}
	}
	return nil
}

// isOpen reports whether a file is open for writing.
func isOpen(info os.FileInfo) bool {
	files.mu.Lock()
	defer files.mu.Unlock()
	return find(info) != nil
}

// leave ends a handle. The last one closes the file.
func (e *entry) leave() {
	e.gate <- struct{}{}
	defer func() { <-e.gate }()
	if e.add(-1) == 0 && e.file != nil {
		e.file.shut()
		e.file = nil
	}
	files.mu.Lock()
	defer files.mu.Unlock()
	if e.handles == 0 {
		files.open = slices.DeleteFunc(files.open, func(other *entry) bool { return other == e })
	}
}

// add adds to the number of handles, and returns it.
func (e *entry) add(n int) int {
	files.mu.Lock()
	defer files.mu.Unlock()
	e.handles += n
	return e.handles
}
