package sqlitewriter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Backup copies the database, as it is when Backup begins, into the file of that path, in the
// place of one that is there. Writes go on meanwhile. The file appears at once and complete,
// or, when ctx ends or there is an error, not at all.
func (w *Writer) Backup(ctx context.Context, path string) (err error) {
	f := w.file
	defer func() {
		if err != nil {
			err = f.named(fmt.Errorf("backup: %w", err))
		}
	}()
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && isOpen(info) {
		return fmt.Errorf("%s is open for writing", path)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name()) // it is of no use
		}
	}()
	if err := errors.Join(temporary.Chmod(w.entry.info.Mode().Perm()), temporary.Close(), f.copyTo(ctx, temporary.Name())); err != nil {
		return err
	}
	if err := syncFile(temporary.Name(), os.O_RDWR); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // has no sync of directories
		return nil
	}
	return syncFile(filepath.Dir(path), os.O_RDONLY)
}

// copyTo copies the database into an empty file.
func (f *file) copyTo(ctx context.Context, path string) error {
	db, err := openDB(f.path, "ro", f.opts.BusyTimeout, 1) // those of readers may not write anything
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "vacuum into ?", path)
	return err
}

func syncFile(path string, flag int) error {
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
