package filepipeline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// The heap after many files is as large as after a few. All paths differ, and a twentieth of the
// contents.
func TestMemoryDoesNotGrowWithFiles(t *testing.T) {
	first, last, slack := 5_000, 25_000, uint64(1<<18) // 13 bytes per file would be as much
	if os.Getenv("EPHEMERAL_LONG") == "" {
		first, last, slack = 1_000, 3_000, 1<<17 // or 65 bytes
	}
	// Running work uses memory for a while; an encoder takes a megabyte. So the least of several samples is
	// the memory that stays.
	const samples, apart = 10, 50
	early, late := uint64(math.MaxUint64), uint64(math.MaxUint64)
	tree := &endlessTree{
		total: last + samples*apart,
		image: pngOf(t, 1, 1),
		listed: func(n int) {
			switch {
			case n%apart != 0:
			case first <= n && n < first+samples*apart:
				early = min(early, liveHeap())
			case last <= n:
				late = min(late, liveHeap())
			}
		},
	}
	s, _, _ := run(t, tree, Options{})
	if got := s.Images(); got != uint64(tree.total) {
		t.Errorf("%d images, want %d", got, tree.total)
	}
	if got, want := s.Signals["duplicate.found"], uint64(tree.total-(tree.total+19)/20); got != want {
		t.Errorf("%d duplicates, want %d", got, want)
	}
	t.Logf("heap after %d files %d, after %d files %d", first, early, last, late)
	coretest.Check(t, late <= early+slack, "the heap grew from %d bytes after %d files to %d after %d", early, first, late, last)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // frees memory that finalizers of the first GC released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// endlessTree is a flat directory that makes each file when it is opened, so that only the pipeline uses memory.
type endlessTree struct {
	total  int
	image  []byte
	listed func(n int)
}

func (t *endlessTree) Open(name string) (fs.File, error) {
	if name == "." {
		return &endlessDir{tree: t}, nil
	}
	var i uint32
	if _, err := fmt.Sscanf(name, "%d.png", &i); err != nil {
		return nil, err
	}
	data := binary.BigEndian.AppendUint32(t.image[:len(t.image):len(t.image)], i/20)
	return &madeUp{bytes.NewReader(data), fileInfo{name, int64(len(data))}}, nil
}

type endlessDir struct {
	tree *endlessTree
	next int
}

func (d *endlessDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.next == d.tree.total {
		return nil, io.EOF
	}
	var entries []fs.DirEntry
	for range min(n, d.tree.total-d.next) {
		d.tree.listed(d.next)
		entries = append(entries, fs.FileInfoToDirEntry(fileInfo{name: fmt.Sprintf("%07d.png", d.next)}))
		d.next++
	}
	return entries, nil
}

func (d *endlessDir) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (d *endlessDir) Read([]byte) (int, error)   { return 0, fs.ErrInvalid }
func (d *endlessDir) Close() error               { return nil }

type madeUp struct {
	*bytes.Reader
	info fileInfo
}

func (f *madeUp) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *madeUp) Close() error               { return nil }

type fileInfo struct {
	name string
	size int64
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return 0o444 }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return false }
func (i fileInfo) Sys() any           { return nil }
