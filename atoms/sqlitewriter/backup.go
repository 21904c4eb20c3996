package sqlitewriter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ephemeralgo/ephemeral/core"
)

// Backup copies the database, as it is when Backup begins, to the file at path. Writes go on
// meanwhile. When the copy is complete and on the disk, it replaces a file that is there. That
// file must not be open. If ctx ends or the copy fails, path does not change.
func (w *Writer) Backup(ctx context.Context, path string) (err error) {
	defer func() { err = w.explain(ctx, err) }()
	was, err := os.Stat(w.path)
	if err != nil {
		return err
	}
	if is, err := os.Stat(path); err == nil && os.SameFile(is, was) {
		return errors.New("sqlitewriter: a backup must not replace the database")
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())                 // in case it was not renamed
	db := openDB(w.path, "ro", w.opts.BusyTimeout, 1) // not w.readers: their connections refuse "vacuum into"
	_, err = db.ExecContext(ctx, "vacuum into ?", core.Must(filepath.Abs(temporary.Name())))
	if err = errors.Join(err, db.Close(), temporary.Chmod(was.Mode().Perm()), temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil || runtime.GOOS == "windows" { // Windows cannot sync directories
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
