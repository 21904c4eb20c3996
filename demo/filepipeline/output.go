package filepipeline

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
)

const (
	thumbsDir = "thumbs"
	tableName = "metadata.jsonl"
)

// Output is the directory that receives the results of one run: metadata.jsonl and thumbs/<sha256>.png. Only one Output of
// a directory can be open at a time. Close it after use.
type Output struct {
	thumbs *os.Root
	rows   *store
}

// OpenOutput creates the directory where needed and removes the rows and thumbnails of an earlier run: afterwards the
// directory describes this run and nothing else. Files with other names stay. It refuses a directory within input,
// because the pipeline would find its own thumbnails there.
func OpenOutput(ctx context.Context, dir, input string) (*Output, error) {
	out := &Output{}
	if err := out.open(ctx, dir, input); err != nil {
		return nil, errors.Join(fmt.Errorf("output directory: %w", err), out.Close())
	}
	return out, nil
}

func (o *Output) open(ctx context.Context, dir, input string) (err error) {
	thumbs := filepath.Join(dir, thumbsDir)
	for _, pair := range [][2]string{{dir, input}, {thumbs, input}, {input, thumbs}} {
		if inside, err := isInside(pair[0], pair[1]); err != nil {
			return err
		} else if inside {
			return fmt.Errorf("%s is inside %s: the pipeline would feed on its own thumbnails", pair[0], pair[1])
		}
	}
	if err := os.MkdirAll(thumbs, 0o777); err != nil {
		return err
	}
	// The table comes first, because it refuses a second run on the same directory.
	if o.rows, err = openStore(ctx, filepath.Join(dir, tableName)); err != nil {
		return err
	}
	if o.thumbs, err = os.OpenRoot(thumbs); err != nil {
		return err
	}
	return o.clear()
}

// isInside reports whether dir, which need not exist, is parent or would be below it. It compares the directories
// themselves, because one directory may have several names through links, mounts and case-insensitive file
// systems.
func isInside(dir, parent string) (bool, error) {
	target, err := os.Stat(parent)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	for up := filepath.Dir(dir); ; dir, up = up, filepath.Dir(up) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir, up = real, filepath.Dir(real)
			if info, err := os.Stat(dir); err == nil && os.SameFile(info, target) {
				return true, nil
			}
		}
		if up == dir {
			return false, nil
		}
	}
}

// ours matches the names of thumbnails, finished and unfinished.
var ours = regexp.MustCompile(`^[0-9a-f]{64}\.(png|tmp)$`)

// clear removes the thumbnails. A directory that changes while it is listed may hide entries, so clear lists it
// until it finds none.
func (o *Output) clear() error {
	for {
		if removed, err := o.clearOnce(); err != nil || removed == 0 {
			return err
		}
	}
}

func (o *Output) clearOnce() (removed int, err error) {
	dir, err := o.thumbs.Open(".")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(readAhead)
		for _, name := range names {
			if !ours.MatchString(name) {
				continue
			}
			if err := o.thumbs.Remove(name); err != nil {
				return removed, err
			}
			removed++
		}
		if err == io.EOF {
			return removed, nil
		} else if err != nil {
			return removed, err
		}
	}
}

// hasThumb returns the name of the thumbnail of these contents, relative to the directory, and whether it is
// finished.
func (o *Output) hasThumb(sha256 string) (name string, ok bool) {
	_, err := o.thumbs.Lstat(sha256 + ".png")
	return path.Join(thumbsDir, sha256+".png"), err == nil
}

// writeThumb stores a thumbnail. It appears under its name complete or not at all. The caller ensures that no other
// goroutine writes the same thumbnail.
func (o *Output) writeThumb(sha256 string, thumb image.Image) error {
	temporary := sha256 + ".tmp"
	file, err := o.thumbs.Create(temporary)
	if err != nil {
		return err
	}
	if err := errors.Join(png.Encode(file, thumb), file.Close()); err != nil {
		return errors.Join(err, o.thumbs.Remove(temporary))
	}
	return o.thumbs.Rename(temporary, sha256+".png")
}

// Close releases the directory. All written files are complete.
func (o *Output) Close() error {
	var errs []error
	if o.thumbs != nil {
		errs = append(errs, o.thumbs.Close())
	}
	if o.rows != nil {
		errs = append(errs, o.rows.close())
	}
	return errors.Join(errs...)
}
