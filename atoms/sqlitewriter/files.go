package sqlitewriter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// place is where a file is.
type place struct {
	path string // absolute, without symbolic links
	info os.FileInfo
}

// resolve returns the place of a file. It makes the file if there is none. It does not open
// a file that exists: to close it again would release the locks that SQLite has on it.
func resolve(path string) (p place, err error) {
	switch {
	case path == "" || path == ":memory:":
		return p, fmt.Errorf("sqlitewriter: the path is %q, but must be that of a file: databases in memory have one connection, and need no writer", path)
	case strings.HasPrefix(path, "file:"):
		return p, fmt.Errorf("sqlitewriter: the path is %q, but must not be a connection string; write ./%s for a file of that name", path, path)
	}
	if p.path, err = filepath.Abs(path); err == nil {
		var made *os.File
		if made, err = os.OpenFile(p.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
			err = made.Close()
		} else if errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		p.path, err = filepath.EvalSymlinks(p.path)
	}
	if err == nil {
		p.info, err = os.Stat(p.path)
	}
	if err == nil && !p.info.Mode().IsRegular() {
		err = fmt.Errorf("sqlitewriter: %q is not a regular file", path)
	}
	if err != nil {
		return p, fmt.Errorf("sqlitewriter: open: %w", err)
	}
	return p, nil
}

// files are the files that are open in this process.
var files struct {
	mu   sync.Mutex
	open []*entry
}

// entry is a file with the number of its handles.
type entry struct {
	*file
	handles int
	ready   chan struct{} // closed when file.open has returned
	err     error         // of it
	going   bool          // there are no handles any more
	gone    chan struct{} // closed when file.shut has returned
}

// acquire returns the file of a path with one more handle, and opens it if there is none.
func acquire(ctx context.Context, path string, given Options) (*entry, error) {
	opts, err := given.resolved()
	if err != nil {
		return nil, err
	}
	p, err := resolve(path)
	if err != nil {
		return nil, err
	}
	opts.Name = cmp.Or(opts.Name, filepath.Base(p.path))
	for ctx.Err() == nil {
		e, until, first := enter(p, opts)
		if first {
			e.err = e.open(ctx)
			close(e.ready)
		}
		select {
		case <-until:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if until == e.gone {
			continue
		}
		if err == nil && e.err == nil {
			if err = e.opts.joins(given, opts); err == nil {
				return e, nil
			}
		}
		e.release()
		if first {
			err = e.err
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, context.Cause(ctx)
}

// enter returns the entry of a place, and what to wait for: until it is open, or gone. First
// says that the caller has to open it.
func enter(p place, opts Options) (e *entry, until chan struct{}, first bool) {
	files.mu.Lock()
	defer files.mu.Unlock()
	i := slices.IndexFunc(files.open, p.is)
	if first = i < 0; first {
		i = len(files.open)
		files.open = append(files.open, &entry{file: newFile(p, opts), ready: make(chan struct{}), gone: make(chan struct{})})
	}
	if e = files.open[i]; e.going {
		return e, e.gone, false
	}
	e.handles++
	return e, e.ready, first
}

// is reports whether a file is at the place, maybe under another name.
func (p place) is(e *entry) bool { return e.path == p.path || os.SameFile(e.info, p.info) }

// isOpen reports whether a file is at the place.
func isOpen(p place) bool {
	files.mu.Lock()
	defer files.mu.Unlock()
	return slices.ContainsFunc(files.open, p.is)
}

// release ends a handle. The last one closes the file.
func (e *entry) release() {
	files.mu.Lock()
	e.handles--
	e.going = e.handles == 0
	last := e.going
	files.mu.Unlock()
	if !last {
		return
	}
	e.shut()
	files.mu.Lock()
	files.open = slices.DeleteFunc(files.open, func(other *entry) bool { return other == e })
	files.mu.Unlock()
	close(e.gone)
}
