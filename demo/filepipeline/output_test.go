package filepipeline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t testing.TB, data []byte, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestOpenOutputRefuses(t *testing.T) {
	base := t.TempDir()
	in := mkdir(t, base, "in")
	mkdir(t, in, "below")
	thumbs := mkdir(t, base, "results", thumbsDir)
	file := filepath.Join(base, "file")
	writeFile(t, nil, file)
	mkdir(t, base, "odd", tableName)
	writeFile(t, nil, base, "blocked", thumbsDir)

	for _, test := range []struct{ name, out, in, want string }{
		{"the input itself", in, in, "feed on"},
		{"inside the input", filepath.Join(in, "below"), in, "feed on"},
		{"inside the input, not there yet", filepath.Join(in, "new", "er"), in, "feed on"},
		{"not clean", in + "/../in/./x", in, "feed on"},
		{"input among earlier thumbnails", filepath.Join(base, "results"), thumbs, "feed on"},
		{"a file", file, in, "output directory: "},
		{"below a file", filepath.Join(file, "x"), in, "output directory: "},
		{"thumbs is a file", filepath.Join(base, "blocked"), in, "output directory: "},
		{"the table is a directory", filepath.Join(base, "odd"), in, tableName},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := OpenOutput(t.Context(), test.out, test.in)
			if err == nil {
				out.Close()
				t.Fatal("accepted")
			}
			coretest.Check(t, strings.Contains(err.Error(), test.want), "OpenOutput: %v, want it to say %q", err, test.want)
		})
	}
	if got := listing(t, in); !slices.Equal(got, []string{"below"}) {
		t.Errorf("a refusal left %q in the input", got)
	}
}

func TestOpenOutputRefusesByLink(t *testing.T) {
	base := t.TempDir()
	in := mkdir(t, base, "in")
	mkdir(t, in, "below")
	link := filepath.Join(base, "elsewhere")
	if err := os.Symlink(filepath.Join(in, "below"), link); err != nil {
		t.Skip(err)
	}
	for _, dir := range []string{link, filepath.Join(link, "new")} {
		if out, err := OpenOutput(t.Context(), dir, in); err == nil {
			out.Close()
			t.Errorf("%s leads into the input and was accepted", dir)
		}
	}
}

func TestOpenOutputAccepts(t *testing.T) {
	base := t.TempDir()
	in := mkdir(t, base, "in")
	for _, dir := range []string{"out", "new/er", "in2", "."} {
		out, err := OpenOutput(t.Context(), filepath.Join(base, dir), in)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if err := out.Close(); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		if got := listing(t, filepath.Join(base, dir)); !slices.Contains(got, tableName) || !slices.Contains(got, thumbsDir) {
			t.Errorf("%s holds %q", dir, got)
		}
	}
}

func TestOpenOutputClearsItsOwnThumbnails(t *testing.T) {
	dir := t.TempDir()
	var keep []string
	for _, name := range []string{"notes.txt", "photo.png", strings.Repeat("A", 64) + ".png"} {
		writeFile(t, nil, dir, thumbsDir, name)
		keep = append(keep, name)
	}
	for i := range 2*readAhead + 1 {
		writeFile(t, nil, dir, thumbsDir, sum([]byte{byte(i), byte(i >> 8)})+[]string{".png", ".tmp"}[i%2])
	}
	out, err := OpenOutput(t.Context(), dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	slices.Sort(keep)
	if got := listing(t, filepath.Join(dir, thumbsDir)); !slices.Equal(got, keep) {
		t.Errorf("left %d names %q, want %q", len(got), got, keep)
	}
}

// An image that cannot be encoded must not leave a partial thumbnail, under any name.
func TestWriteThumbFailure(t *testing.T) {
	dir := t.TempDir()
	out, err := OpenOutput(t.Context(), dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := out.writeThumb(sum(nil), testImage(0, 0)); err == nil {
		t.Fatal("an image without pixels was written")
	}
	if got := listing(t, filepath.Join(dir, thumbsDir)); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}
