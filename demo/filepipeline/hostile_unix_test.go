//go:build unix

package filepipeline

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A directory as hostile as a real disk allows; every row and every signal is accounted for.
func TestRunHostileDirectory(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "in")
	plain := pngOf(t, 400, 100)
	deep := strings.Repeat("deeper/", 300) + "leaf.png"
	names := map[string][]byte{
		"plain.png":              plain,
		"a b  c .png":            pngOf(t, 11, 1),
		"ünïcødé 画像 \U0001F5BC":  pngOf(t, 12, 1),
		"new\nline.png":          pngOf(t, 13, 1),
		"-rf":                    pngOf(t, 14, 1),
		"--in=x":                 pngOf(t, 15, 1),
		"quote'\";--.png":        pngOf(t, 16, 1),
		`back\slash.png`:         pngOf(t, 17, 1),
		"esc\x1b[31m.png":        pngOf(t, 18, 1),
		"%41?#&.png":             pngOf(t, 19, 1),
		" ":                      pngOf(t, 20, 1),
		"...":                    pngOf(t, 21, 1),
		"really an image.txt":    pngOf(t, 22, 1),
		strings.Repeat("n", 255): pngOf(t, 23, 1),
		deep:                     pngOf(t, 24, 1),
		"same/1.png":             pngOf(t, 28, 1),
		"empty.png":              nil,
		"text.png":               []byte("no image at all"),
		"photo.webp":             []byte("RIFF\x00\x00\x00\x00WEBPVP8 "),
	}
	if runtime.GOOS != "darwin" { // file systems of darwin require UTF-8
		names["bytes\xff\xfe.png"] = pngOf(t, 25, 1)
	}
	root := mkdir(t, dir)
	writeTree(t, root, names)

	outside := filepath.Join(base, "outside.png")
	writeFile(t, plain, outside)
	for link, target := range map[string]string{
		"loop": ".", "same/loop": "../same", "self": "self", "dangling.png": "nowhere",
		"link.png": "plain.png", "out.png": outside, "out": base,
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	// Opening this would wait for a writer for ever.
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.png"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // the address of a socket must be short
	socket, err := net.Listen("unix", "socket.png")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	// Only root can read a file without permissions.
	locked := os.Geteuid() != 0
	writeFile(t, pngOf(t, 26, 1), dir, "locked.png")
	writeFile(t, pngOf(t, 27, 1), dir, "locked", "x.png")
	if locked {
		for name, mode := range map[string]fs.FileMode{"locked.png": 0, "locked": 0} {
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
		defer os.Chmod(filepath.Join(dir, "locked"), 0o777)
	}

	in, err := OpenInput(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	s, rows, _ := run(t, in, Options{})

	var want []row
	for name, data := range names {
		switch name {
		case "empty.png", "text.png", "photo.webp":
		case "plain.png":
			want = append(want, rowOf(name, "png", "image/png", 400, 100, data))
		default: // a strip, one pixel high, whose width identifies its name
			f, err := inspect(in, name, testLimits)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, rowOf(name, "png", "image/png", f.Width, 1, data))
		}
	}
	failed, directories := uint64(0), uint64(0)
	if locked {
		want = append(want, row{"locked.png", "-", "-", "-", "-", "-", "-", "-", "-", "permission denied"})
		failed, directories = failed+2, 1
	} else {
		want = append(want, rowOf("locked.png", "png", "image/png", 26, 1, pngOf(t, 26, 1)),
			rowOf("locked/x.png", "png", "image/png", 27, 1, pngOf(t, 27, 1)))
	}
	checkRows(t, rows, want...)

	wantSkipped := map[Reason]uint64{
		ReasonLink: 7, ReasonSpecial: 2, ReasonEmpty: 1, ReasonNoImage: 1, ReasonUnsupported: 1,
	}
	for why, n := range wantSkipped {
		if s.Skipped[why] != n {
			t.Errorf("%d skipped as %s, want %d", s.Skipped[why], why, n)
		}
	}
	coretest.Check(t, s.Failed == failed && s.Signals["directory.failed"] == directories, "%d failed, want %d: %+v", s.Failed, failed, s.Failures)
	if got := s.Signals["file.skipped"]; got != 12 {
		t.Errorf("%d skipped in all, want 12", got)
	}
	var printed strings.Builder
	if err := s.Print(&printed); err != nil || strings.ContainsAny(printed.String(), "\x1b\r") {
		t.Errorf("the report would confuse a terminal: %q, %v", printed.String(), err)
	}
}

// writeTree writes files through a root, because some paths are too long for one system call.
func writeTree(t *testing.T, dir string, names map[string][]byte) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, data := range names {
		if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o777), root.WriteFile(name, data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
}

// A file of a listing may be a pipe when it is opened.
func TestInputDoesNotWaitForPipes(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	in, err := OpenInput(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := openRegular(in, "pipe"); err == nil || err.Error() != "no longer a regular file" {
		t.Errorf("openRegular of a pipe: %v", err)
	}
}

func TestInputDoesNotLeaveItsDirectory(t *testing.T) {
	base := t.TempDir()
	writeFile(t, nil, base, "outside")
	dir := mkdir(t, base, "in")
	if err := os.Symlink("../outside", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	in, err := OpenInput(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for _, name := range []string{"link", "../outside"} {
		if f, err := in.Open(name); err == nil {
			f.Close()
			t.Errorf("opened %s", name)
		}
	}
}

func TestOpenInputRefuses(t *testing.T) {
	base := t.TempDir()
	writeFile(t, nil, base, "file")
	mkdir(t, base, "locked")
	if err := os.Chmod(filepath.Join(base, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"missing": "no such file or directory",
		"file":    "not a directory",
		"locked":  "permission denied",
	} {
		if name == "locked" && os.Geteuid() == 0 {
			continue // root may
		}
		in, err := OpenInput(filepath.Join(base, name))
		if err == nil {
			in.Close()
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
