package sqlitewriter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"modernc.org/sqlite"
)

// pagesPerStep is how many pages a backup copies before it looks at its context.
const pagesPerStep = 1024

// Backup copies the database, as it is when Backup begins, into the file of that path, in the
// place of one that is there. Writes go on meanwhile. The file appears at once and complete,
// or, when ctx ends or there is an error, not at all.
func (w *Writer) Backup(ctx context.Context, path string) (err error) {
	f := w.file
	defer func() {
		if err != nil {
			err = f.named("backup: ", err)
		}
	}()
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && isOpen(place{path, info}) {
		return fmt.Errorf("sqlitewriter: %s is open for writing", path)
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
	if err := errors.Join(temporary.Chmod(f.info.Mode().Perm()), temporary.Close(), f.copyTo(ctx, temporary.Name())); err != nil {
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
	c, err := f.readers.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	// The transaction keeps the copy consistent: without it every write would start it again.
	tx, err := c.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "select count(*) from sqlite_schema"); err != nil {
		return err
	}
	return c.Raw(func(driver any) error {
		b, err := driver.(interface {
			NewBackup(string) (*sqlite.Backup, error)
		}).NewBackup(dsn(path, "rw", 0))
		if err != nil {
			return err
		}
		for more := true; more && err == nil; {
			if more, err = b.Step(pagesPerStep); err == nil {
				err = context.Cause(ctx)
			}
		}
		return errors.Join(err, b.Finish())
	})
}

func syncFile(path string, flag int) error {
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
