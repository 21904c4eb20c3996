package filepipeline

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core/filelock"
)

// A store is the table of the images that this run found, and nothing else: a file with a line of JSON for each change
// of a row. Of two lines with one path, the later adds to the earlier. It has one writer at a time. Every line is
// written as a whole, and survives the death of the process.
type store struct {
	lock     *filelock.Lock
	release  func()
	lines    *os.File
	contents *os.Root // a file for each hash, with the first path of these contents: in memory, it would grow with the number of files
	dir      string   // of contents
}

// line is a change of a row. A field that is not known or does not apply is left out.
type line struct {
	Path        string `json:"path"`
	SHA256      string `json:"sha256,omitempty"`
	Format      string `json:"format,omitempty"`
	Width       int    `json:"width,omitempty"`
	Height      int    `json:"height,omitempty"`
	Bytes       int64  `json:"bytes,omitempty"`
	MIME        string `json:"mime,omitempty"`
	Thumb       string `json:"thumb,omitempty"`
	DuplicateOf string `json:"duplicate_of,omitempty"`
	Error       string `json:"error,omitempty"`
}

// lineBegins is how every line begins, so that no other file is taken for a table.
const lineBegins = `{"path":"`

var errLocked = errors.New("locked by another run")

// openStore opens or creates the file and starts with an empty table.
func openStore(ctx context.Context, path string) (*store, error) {
	s := &store{dir: path + ".contents"}
	if err := s.start(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), s.close())
	}
	return s, nil
}

func (s *store) start(ctx context.Context, path string) (err error) {
	if s.lock, err = filelock.Open(path + ".lock"); err != nil {
		return err
	}
	wait, cancel := context.WithTimeoutCause(ctx, 100*time.Millisecond, errLocked)
	defer cancel()
	if s.release, err = s.lock.Acquire(wait); err != nil {
		return err
	}
	if s.lines, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o666); err != nil {
		return err
	}
	begin := make([]byte, len(lineBegins))
	if n, err := io.ReadFull(s.lines, begin); n > 0 && string(begin[:n]) != lineBegins {
		return errors.New("it is no table of an earlier run")
	} else if n == 0 && err != io.EOF {
		return err
	}
	if err := errors.Join(s.lines.Truncate(0), os.RemoveAll(s.dir), os.Mkdir(s.dir, 0o777)); err != nil {
		return err
	}
	s.contents, err = os.OpenRoot(s.dir)
	return err
}

// text is a path as JSON can have it: Go quotes a path that is not UTF-8.
func text(path string) string {
	if utf8.ValidString(path) && !strings.HasPrefix(path, `"`) {
		return path
	}
	return strconv.Quote(path)
}

// write appends a line.
func (s *store) write(path string, l line) error {
	l.Path = text(path)
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		return err
	}
	_, err := s.lines.Write(encoded.Bytes())
	return err
}

// insert writes the row of a file; cause is "" unless it failed.
func (s *store) insert(f File, cause string) error {
	return s.write(f.Path, line{SHA256: f.SHA256, Format: f.Format, Width: f.Width, Height: f.Height, Bytes: f.Bytes, MIME: f.MIME, Error: cause})
}

func (s *store) setThumb(path, thumb string) error { return s.write(path, line{Thumb: thumb}) }

func (s *store) setError(path, cause string) error { return s.write(path, line{Error: cause}) }

// claim enters a path for its contents and returns the path that it duplicates, or "" if the contents are new. The
// first of equal files is the file whose path sorts lowest, in whatever order they come. If path sorts below the
// present first, they change places, and the result names the file that became the duplicate. Rows that already point
// to that file are repaired by settle.
func (s *store) claim(path, sha256 string) (d Duplicate, err error) {
	first, err := s.contents.ReadFile(sha256)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Duplicate{}, s.contents.WriteFile(sha256, []byte(path), 0o666)
	case err != nil:
		return Duplicate{}, err
	case string(first) < path:
		d = Duplicate{Path: path, Of: string(first)}
	default:
		d = Duplicate{Path: string(first), Of: path}
		if err := s.contents.WriteFile(sha256, []byte(path), 0o666); err != nil {
			return Duplicate{}, err
		}
	}
	return d, s.write(d.Path, line{SHA256: sha256, DuplicateOf: text(d.Of)})
}

// settle makes every duplicate point to the first of its contents: it repairs rows that were written before the final
// first file of their contents came.
func (s *store) settle() error {
	end, err := s.lines.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for lines := bufio.NewReader(io.NewSectionReader(s.lines, 0, end)); ; {
		data, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var l line
		if err := json.Unmarshal(data, &l); err != nil {
			return err
		}
		if l.DuplicateOf == "" {
			continue
		}
		first, err := s.contents.ReadFile(l.SHA256)
		if err != nil {
			return err
		}
		if of := text(string(first)); of != l.DuplicateOf {
			path := l.Path
			if unquoted, err := strconv.Unquote(path); err == nil && strings.HasPrefix(path, `"`) {
				path = unquoted
			}
			if err := s.write(path, line{DuplicateOf: of}); err != nil {
				return err
			}
		}
	}
}

// close releases the file.
func (s *store) close() error {
	var errs []error
	if s.contents != nil {
		errs = append(errs, s.contents.Close(), os.RemoveAll(s.dir))
	}
	if s.lines != nil {
		errs = append(errs, s.lines.Close())
	}
	if s.release != nil {
		s.release()
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
