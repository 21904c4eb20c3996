package filepipeline

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
)

// readAhead is how many names of a directory are held at once. [fs.WalkDir] holds and sorts all names, so its memory
// grows with the number of files in a directory.
const readAhead = 256

// entry is one thing found below the input directory.
type entry struct {
	path string
	skip Reason // why it is not read; "" for a regular file
	err  error  // path is a directory that could not be listed
}

// walk yields everything below the root except directories, depth first. Directories of up to readAhead entries are sorted;
// larger ones are in the order of the file system. So no code may depend on the order. It follows no links and opens only
// directories, so it neither loops nor blocks. It holds readAhead names and one open directory per level.
func walk(fsys fs.FS) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		var levels []*level
		defer func() {
			for _, l := range levels {
				l.dir.Close()
			}
		}()

		descend := func(dir string) bool {
			l, err := openLevel(fsys, dir)
			if err != nil {
				return yield(entry{path: dir, err: err})
			}
			levels = append(levels, l)
			return true
		}
		if !descend(".") {
			return
		}
		for len(levels) > 0 {
			l := levels[len(levels)-1]
			d, err := l.next()
			switch {
			case d != nil && d.IsDir():
				if !descend(path.Join(l.path, d.Name())) {
					return
				}
			case d != nil:
				if !yield(entry{path: path.Join(l.path, d.Name()), skip: irregular(d.Type())}) {
					return
				}
			default:
				l.dir.Close()
				levels = levels[:len(levels)-1]
				if err != io.EOF && !yield(entry{path: l.path, err: err}) {
					return
				}
			}
		}
	}
}

// Count walks fsys without opening any file and reports how many entries [Run] will account for, or how many it saw
// before ctx ended.
func Count(ctx context.Context, fsys fs.FS) int64 {
	var n int64
	for e := range walk(fsys) {
		if ctx.Err() != nil {
			break
		}
		if e.err == nil {
			n++
		}
	}
	return n
}

// level is one directory on the way down.
type level struct {
	path  string
	dir   fs.ReadDirFile
	batch []fs.DirEntry
	err   error // the error that ended the listing; reported when batch is used up
}

func openLevel(fsys fs.FS, name string) (*level, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		f.Close()
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	return &level{path: name, dir: dir}, nil
}

// next returns the next entry, or nil and the reason why there is none: io.EOF at the end.
func (l *level) next() (fs.DirEntry, error) {
	if len(l.batch) == 0 && l.err == nil {
		l.batch, l.err = l.dir.ReadDir(readAhead)
		slices.SortFunc(l.batch, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	}
	if len(l.batch) == 0 {
		return nil, l.err
	}
	d := l.batch[0]
	l.batch = l.batch[1:]
	return d, nil
}

// irregular says why an entry of this type is not read. Devices, pipes and sockets must not even be opened: that can
// block for ever or have effects.
func irregular(typ fs.FileMode) Reason {
	switch {
	case typ.IsRegular():
		return ""
	case typ&fs.ModeSymlink != 0:
		return ReasonLink
	default:
		return ReasonSpecial
	}
}
