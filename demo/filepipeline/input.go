package filepipeline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Input is a directory on disk as an [fs.FS]. It differs from [os.DirFS], because a tree may be hostile: no name leads
// out of the directory (it is an [os.Root]), names need not be valid UTF-8, and opening never waits for the other end
// of a named pipe. Close it after use.
type Input struct {
	root *os.Root
}

// OpenInput opens the directory, which must exist and be readable.
func OpenInput(dir string) (*Input, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("input directory: %w", err)
	}
	in := &Input{root: root}
	if err := in.readable(); err != nil {
		return nil, errors.Join(fmt.Errorf("input directory: %w", err), in.Close())
	}
	return in, nil
}

// readable returns the reason if the directory cannot be listed: a root can be opened even
// without that right.
func (in *Input) readable() error {
	dir, err := in.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, err := dir.ReadDir(1); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// Open implements [fs.FS]. It opens without blocking, because a regular file of the listing may have become a pipe
// since. The reader checks the type of the opened file.
func (in *Input) Open(name string) (fs.File, error) {
	file, err := in.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err // not file, because a nil *os.File in an fs.File is not nil
	}
	return file, nil
}

// Close releases the directory.
func (in *Input) Close() error { return in.root.Close() }
