package filepipeline

import (
	"context"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func transcript(fsys fs.FS) []string {
	var lines []string
	for e := range walk(fsys) {
		switch {
		case e.err != nil:
			lines = append(lines, e.path+" ERROR "+cause(e.err))
		case e.skip != "":
			lines = append(lines, e.path+" SKIP "+string(e.skip))
		default:
			lines = append(lines, e.path)
		}
	}
	return lines
}

func TestWalk(t *testing.T) {
	for _, test := range []struct {
		name string
		fsys fs.FS
		want []string
	}{
		{"empty", fstest.MapFS{}, nil},
		{"nested, in order", files(map[string][]byte{"b": nil, "a/y": nil, "a/x/deep": nil, "c/z": nil}),
			[]string{"a/x/deep", "a/y", "b", "c/z"}},
		{"links and specials are not read", fstest.MapFS{
			"dir/link":   {Mode: fs.ModeSymlink},
			"dir/pipe":   {Mode: fs.ModeNamedPipe},
			"dir/socket": {Mode: fs.ModeSocket},
			"dir/device": {Mode: fs.ModeDevice | fs.ModeCharDevice},
		}, []string{
			"dir/device SKIP device, pipe or socket", "dir/link SKIP symbolic link",
			"dir/pipe SKIP device, pipe or socket", "dir/socket SKIP device, pipe or socket",
		}},
		{"an unreadable directory fails alone", openFunc{
			files(map[string][]byte{"a": nil, "locked/x": nil, "z": nil}),
			func(inner fs.FS, name string) (fs.File, error) {
				if name == "locked" {
					return nil, denied("open", name)
				}
				return inner.Open(name)
			},
		}, []string{"a", "locked ERROR permission denied", "z"}},
		{"a listing that breaks off is reported after what it gave", openFunc{
			files(map[string][]byte{"a": nil, "torn/x": nil, "z": nil}),
			func(inner fs.FS, name string) (fs.File, error) {
				f, err := inner.Open(name)
				if name == "torn" {
					return tornDir{f.(fs.ReadDirFile)}, err
				}
				return f, err
			},
		}, []string{"a", "torn/x", "torn ERROR permission denied", "z"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := transcript(test.fsys); !slices.Equal(got, test.want) {
				t.Errorf("walk\n got %q\nwant %q", got, test.want)
			}
		})
	}
}

// tornDir lists its entries and then returns an error instead of io.EOF.
type tornDir struct{ fs.ReadDirFile }

func (d tornDir) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := d.ReadDirFile.ReadDir(n)
	if err != nil {
		err = denied("readdirent", "torn")
	}
	return entries, err
}

func TestWalkStopsAndClosesDirectories(t *testing.T) {
	open := 0
	fsys := openFunc{files(map[string][]byte{"a/b/c": nil, "a/b/d": nil, "e": nil}),
		func(inner fs.FS, name string) (fs.File, error) {
			f, err := inner.Open(name)
			if err != nil {
				return nil, err
			}
			open++
			return countedClose{f.(fs.ReadDirFile), &open}, nil
		}}
	for e := range walk(fsys) {
		if e.path == "a/b/c" {
			break
		}
	}
	coretest.Check(t, open == 0, "%d directories left open after the walk was abandoned", open)
	transcript(fsys)
	coretest.Check(t, open == 0, "%d directories left open after a whole walk", open)
}

type countedClose struct {
	fs.ReadDirFile
	open *int
}

func (c countedClose) Close() error {
	*c.open--
	return c.ReadDirFile.Close()
}

func TestCount(t *testing.T) {
	fsys := fstest.MapFS{"a": {}, "d/b": {}, "d/link": {Mode: fs.ModeSymlink}}
	if got := Count(t.Context(), fsys); got != 3 {
		t.Errorf("Count = %d, want 3: what is skipped is accounted for as well", got)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Count(cancelled, fsys); got != 0 {
		t.Errorf("Count = %d with an ended context, want 0", got)
	}
}
