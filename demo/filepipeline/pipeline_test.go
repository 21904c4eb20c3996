package filepipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// run sends fsys through the pipeline into a new directory. It returns the summary and the rows.
func run(t *testing.T, fsys fs.FS, opts Options) (s Summary, rows map[string]row, dir string) {
	t.Helper()
	dir = t.TempDir()
	s, rows, err := runInto(t, t.Context(), fsys, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s, rows, dir
}

func runInto(t *testing.T, ctx context.Context, fsys fs.FS, dir string, opts Options) (Summary, map[string]row, error) {
	t.Helper()
	out, err := OpenOutput(t.Context(), dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Run(ctx, fsys, out, opts)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return s, readRows(t, filepath.Join(dir, tableName)), err
}

// rowOf is the row that an image without any trouble must have.
func rowOf(path, format, mime string, w, h int, data []byte) row {
	hash := sum(data)
	return row{path, hash, format, fmt.Sprint(w), fmt.Sprint(h), fmt.Sprint(len(data)), mime, "thumbs/" + hash + ".png", "-", "-"}
}

func (r row) failing(cause string) row {
	r.thumb, r.err = "-", cause
	return r
}

func (r row) duplicating(path string) row {
	r.duplicateOf = path
	return r
}

func checkRows(t *testing.T, got map[string]row, want ...row) {
	t.Helper()
	for _, w := range want {
		if g, ok := got[w.path]; !ok {
			t.Errorf("no row for %q", w.path)
		} else if g != w {
			t.Errorf("row\n got %q\nwant %q", g, w)
		}
		delete(got, w.path)
	}
	for path := range got {
		t.Errorf("unexpected row %q", got[path])
	}
}

func checkSignals(t *testing.T, s Summary, want map[string]uint64) {
	t.Helper()
	coretest.Check(t, maps.Equal(s.Signals, want), "signals\n got %v\nwant %v", s.Signals, want)
}

func TestRun(t *testing.T) {
	red, blue, torn := pngOf(t, 600, 300), jpegOf(t, 20, 10), gifOf(t, 300, 200)[:1000]
	fsys := files(map[string][]byte{
		"b.png": red, "sub/a.png": red, "c": red, "blue.jpg": blue,
		"torn.gif": torn, "torn too.gif": torn, "bomb": pngBomb(60_000, 60_000),
		"notes.txt": []byte("text"), "empty": nil,
	})
	s, rows, dir := run(t, fsys, Options{})

	redRow := func(path string) row { return rowOf(path, "png", "image/png", 600, 300, red) }
	tornRow := func(path string) row {
		return rowOf(path, "gif", "image/gif", 300, 200, torn).failing(decodeCause(t, torn))
	}
	checkRows(t, rows,
		redRow("b.png"), redRow("c").duplicating("b.png"), redRow("sub/a.png").duplicating("b.png"),
		rowOf("blue.jpg", "jpeg", "image/jpeg", 20, 10, blue),
		tornRow("torn too.gif"), tornRow("torn.gif").duplicating("torn too.gif"),
		rowOf("bomb", "png", "image/png", 60_000, 60_000, pngBomb(60_000, 60_000)).
			failing("declares 60000x60000 = 3600000000 pixels, the limit is 50000000"),
	)
	if got := listing(t, filepath.Join(dir, thumbsDir)); len(got) != 2 {
		t.Errorf("thumbs %q, want one per contents", got)
	}
	checkSignals(t, s, map[string]uint64{
		"file.saved": 6, "file.failed": 1, "file.skipped": 2, "metadata.written": 7,
		"thumbnail.complete": 4, "thumbnail.failed": 2, "duplicate.found": 3,
	})
	if got, want := fmt.Sprint(s.Files(), s.Images(), s.Failed, s.Interrupted), "9 7 3 false"; got != want {
		t.Errorf("files, images, failures and interrupted: got %s, want %s", got, want)
	}
	if want := int64(3*len(red) + len(blue) + 2*len(torn) + len(pngBomb(1, 1))); s.Bytes != want {
		t.Errorf("%d bytes, want %d", s.Bytes, want)
	}
	var failed []string
	for _, f := range s.Failures {
		failed = append(failed, f.File.Path)
	}
	if want := []string{"bomb", "torn too.gif", "torn.gif"}; !slices.Equal(failed, want) {
		t.Errorf("failures %q, want %q", failed, want)
	}
	for i, want := range []uint64{9, 6, 7, 7 + 6 + 7} {
		if s.Stages[i].Count != want {
			t.Errorf("stage %s timed %d times, want %d", s.Stages[i].Name, s.Stages[i].Count, want)
		}
	}
}

// The same tree gives the same rows, whatever the limits and the order in which files finish.
func TestRunIsDeterministic(t *testing.T) {
	data := map[string][]byte{}
	for i := range 100 {
		data[fmt.Sprintf("%c/%03d", 'a'+i*7%5, i*37%100)] = pngOf(t, 1+i%10, 1)
	}
	var want map[string]row
	for _, limits := range [][2]int{{1, 1}, {2, 8}, {16, 1}, {32, 32}} {
		_, rows, _ := run(t, files(data), Options{Readers: limits[0], Thumbnailers: limits[1]})
		if want == nil {
			want = rows
		}
		coretest.Check(t, maps.Equal(rows, want), "readers, thumbnailers %v: other rows than one of each gives", limits)
	}
	coretest.Check(t, len(want) == 100, "%d rows, want 100", len(want))
}

// Failures of the disk: each of these files fails alone.
func TestRunTrouble(t *testing.T) {
	names := []string{"changes", "good", "locked", "panics", "panics later", "secret/x", "unreadable", "vanished", "vanishes"}
	data := map[string][]byte{}
	for i, name := range names { // different contents, so that no thumbnail is shared
		data[name] = pngOf(t, 30, 1+i)
	}
	var mu sync.Mutex
	opened := map[string]int{}
	fsys := openFunc{files(data), func(inner fs.FS, name string) (fs.File, error) {
		mu.Lock()
		opened[name]++
		again := opened[name] > 1
		mu.Unlock()
		f, err := inner.Open(name)
		switch {
		case name == "locked" || name == "secret":
			return nil, denied("openat", name)
		case name == "vanished" || name == "vanishes" && again:
			return nil, &fs.PathError{Op: "openat", Path: name, Err: fs.ErrNotExist}
		case name == "unreadable":
			return brokenFile{f, func() error { return errors.New("input/output error") }}, nil
		case name == "changes" && again:
			return files(map[string][]byte{name: data["good"]}).Open(name)
		case name == "panics" || name == "panics later" && again:
			return brokenFile{f, func() error { panic("a bug in a decoder") }}, nil
		}
		return f, err
	}}
	s, rows, _ := run(t, fsys, Options{})

	whole := func(path string) row {
		return rowOf(path, "png", "image/png", 30, 1+slices.Index(names, path), data[path])
	}
	nothing := func(path, cause string) row { return row{path, "-", "-", "-", "-", "-", "-", "-", "-", cause} }
	checkRows(t, rows,
		whole("changes").failing("changed while being processed"),
		whole("good"),
		nothing("locked", "permission denied"),
		nothing("panics", "the decoder panicked"),
		whole("panics later").failing("the decoder panicked"),
		nothing("unreadable", "input/output error"),
		nothing("vanished", "file does not exist"),
		whole("vanishes").failing("file does not exist"),
	)
	if got, want := fmt.Sprint(s.Signals["directory.failed"], s.Failed, s.Signals[core.SignalPanicked]), "1 8 2"; got != want {
		t.Errorf("failed directories, failures and panics: got %s, want %s", got, want)
	}
	coretest.Check(t, slices.ContainsFunc(s.Failures, func(f Failure) bool { return f.File.Path == "secret" }), "the unreadable directory is not among the failures")
}

// brokenFile is a file whose bytes cannot be read.
type brokenFile struct {
	fs.File
	read func() error
}

func (f brokenFile) Read([]byte) (int, error) { return 0, f.read() }

// A second run into the same directory describes the second run.
func TestRunAgain(t *testing.T) {
	dir := t.TempDir()
	first, second := pngOf(t, 3, 2), pngOf(t, 2, 3)
	if _, _, err := runInto(t, t.Context(), files(map[string][]byte{"kept": first, "gone": second}), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	_, rows, err := runInto(t, t.Context(), files(map[string][]byte{"kept": first, "new": first}), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	kept := rowOf("kept", "png", "image/png", 3, 2, first)
	checkRows(t, rows, kept, rowOf("new", "png", "image/png", 3, 2, first).duplicating("kept"))
	if got := listing(t, filepath.Join(dir, thumbsDir)); !slices.Equal(got, []string{sum(first) + ".png"}) {
		t.Errorf("thumbs %q, want that of the second run only", got)
	}
}

// When the context ends, exactly the accepted files are finished and written.
func TestRunInterrupted(t *testing.T) {
	data := map[string][]byte{}
	for i := range 300 {
		data[fmt.Sprintf("%03d", i)] = pngOf(t, 1+i, 2)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	sink := signals.NewSink(signals.SinkOptions{})
	saved := 0
	sink.Subscribe(SignalFileSaved, func(signals.Signal) {
		if saved++; saved == 20 {
			interrupt()
		}
	})
	dir := t.TempDir()
	s, rows, err := runInto(t, ctx, files(data), dir, Options{Sink: sink, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.Interrupted, s.Signals[SignalPipelineInterrupted]), "true 1"; got != want {
		t.Errorf("interrupted, and signals of it: got %s, want %s", got, want)
	}
	coretest.Check(t, len(rows) >= 20 && len(rows) <= 30, "%d rows after an interruption at 20, want those and a short queue", len(rows))
	for name, r := range rows {
		var i int
		fmt.Sscan(strings.TrimLeft(name, "0")+" ", &i)
		if want := rowOf(name, "png", "image/png", 1+i, 2, data[name]); r != want {
			t.Errorf("unfinished row\n got %q\nwant %q", r, want)
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(r.thumb))); err != nil {
			t.Error(err)
		}
	}
}

// If a thumbnail cannot be written, the image is not at fault: the run ends with an error and not with a list of
// failures.
func TestRunOutputFails(t *testing.T) {
	data := map[string][]byte{}
	for i := range 300 {
		data[fmt.Sprintf("%03d", i)] = pngOf(t, 1+i, 2)
	}
	out, err := OpenOutput(t.Context(), t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := out.thumbs.Close(); err != nil {
		t.Fatal(err)
	}
	// Each limit is 1, so that the queues are short and the first failure is known, on any number of processors.
	s, err := Run(t.Context(), files(data), out, Options{Readers: 1, Thumbnailers: 1})
	coretest.Check(t, errors.Is(err, fs.ErrClosed) && strings.HasPrefix(err.Error(), "output for 000: "), "Run: %v, want the first write that failed", err)
	if s.Failed != 0 || s.Signals["output.failed"] == 0 || s.Files() > 50 {
		t.Errorf("%d failures of %d files, signals %v; want an early end and no blame on the images", s.Failed, s.Files(), s.Signals)
	}
	coretest.Check(t, !s.Interrupted, "nobody interrupted")
	out.Close()
}

func TestRunRefusesOptions(t *testing.T) {
	for _, opts := range []Options{{Readers: -1}, {Thumbnailers: -1}, {Limits: Limits{MaxBytes: -1}}, {Limits: Limits{MaxPixels: -1}}} {
		if _, err := Run(t.Context(), files(nil), nil, opts); err == nil || !strings.Contains(err.Error(), "must not be negative") {
			t.Errorf("Run with %+v: %v", opts, err)
		}
	}
}

// The pipeline is compared with a simple model, on the images of Go's own tests.
func TestRunOnGoImages(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip(err)
	}
	in, err := OpenInput(filepath.Join(strings.TrimSpace(string(root)), "src", "image"))
	if err != nil {
		t.Skip(err)
	}
	defer in.Close()
	s, rows, dir := run(t, in, Options{})

	var total uint64
	err = fs.WalkDir(in, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		total++
		data, err := fs.ReadFile(in, path)
		if err != nil {
			return err
		}
		r, listed := rows[path]
		config, format, _ := image.DecodeConfig(bytes.NewReader(data))
		coretest.Check(t, listed == (format != ""), "%s: format %q, in the table: %v", path, format, listed)
		if !listed {
			return nil
		}
		got, want := r.sha256+" "+r.bytes, fmt.Sprint(sum(data), " ", len(data))
		coretest.Check(t, got == want, "%s: got sum and size %s, want %s", path, got, want)
		img, _, err := image.Decode(bytes.NewReader(data))
		coretest.Check(t, (err != nil) == (r.err != "-"), "%s: decodes with %v, row says %s", path, err, r.err)
		if err != nil {
			return nil
		}
		if r.format != format || r.width != fmt.Sprint(config.Width) || r.height != fmt.Sprint(config.Height) {
			t.Errorf("%s: is %s %dx%d, row says %q", path, format, config.Width, config.Height, r)
		}
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(r.thumb)))
		if err != nil {
			return err
		}
		defer f.Close()
		thumb, err := png.DecodeConfig(f)
		w, h := fit(img.Bounds().Dx(), img.Bounds().Dy(), thumbSide)
		coretest.Check(t, err == nil && thumb.Width == w && thumb.Height == h, "%s: thumbnail %dx%d, %v; want %dx%d", path, thumb.Width, thumb.Height, err, w, h)
		return nil
	})
	coretest.Check(t, err == nil, "%v", err)
	if s.Files() != total || s.Images() < 50 || s.Failed == 0 {
		t.Errorf("%d files, %d images, %d failed; the tree holds %d files", s.Files(), s.Images(), s.Failed, total)
	}
}
