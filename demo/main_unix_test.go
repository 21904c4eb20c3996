//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/demo/internal/programtest"
)

// A real process gets the signal in the middle of more work than it can finish. It finishes its running work, and
// says so.
func TestInterrupt(t *testing.T) {
	const total = 600
	dir := t.TempDir()
	manyImages(t, dir, total)
	out := filepath.Join(t.TempDir(), "out")
	// One thumbnail after the other takes seconds, on any number of processors.
	cmd := programtest.Command(t, "-in", dir, "-out", out, "-thumbnailers", "1")
	cmd.Stderr = t.Output()
	stdout := programtest.Start(t, cmd)
	waitForThumbnail(t, stdout, filepath.Join(out, "thumbs"))
	programtest.Interrupt(t, cmd)
	rest := programtest.End(t, cmd, stdout, program.Interrupted)
	for _, says := range []string{"interrupted: ", "pipeline.interrupted"} {
		coretest.Check(t, strings.Contains(rest, says), "the report does not say %q:\n%s", says, rest)
	}
	checkFinished(t, out, total)
}

// manyImages makes big images with different contents quickly: it encodes one image, and appends different bytes to
// copies.
func manyImages(t *testing.T, dir string, n int) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 700, 700))); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		write(t, fmt.Append(b.Bytes(), i), dir, fmt.Sprintf("%04d.png", i))
	}
}

// waitForThumbnail returns when the run is in the middle of its work.
func waitForThumbnail(t *testing.T, stdout *bufio.Reader, dir string) {
	t.Helper()
	for line := ""; !strings.HasPrefix(line, "writing "); { // printed when the directory is there
		var err error
		if line, err = stdout.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for found := false; !found; {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		found = slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".png") })
	}
}

// checkFinished checks that there are rows, but not all, and that each row is complete.
func checkFinished(t *testing.T, out string, total int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "metadata.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	thumbs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var row struct{ Path, Thumb string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		thumbs[row.Path] += row.Thumb
	}
	n := len(thumbs)
	for path, thumb := range thumbs {
		if _, err := os.Stat(filepath.Join(out, filepath.FromSlash(thumb))); thumb == "" || err != nil {
			t.Errorf("%s has the thumbnail %q: %v", path, thumb, err)
		}
	}
	coretest.Check(t, n != 0 && n < total, "%d rows of %d images: nothing was interrupted", n, total)
}

// A command that does not end after Ctrl-C ends with the second Ctrl-C, or when the time for
// draining is over. The handler is the same for all commands.
func TestSecondInterrupt(t *testing.T) {
	for _, test := range []struct {
		first       os.Signal
		drain, says string
	}{{os.Interrupt, "1h", ""}, {syscall.SIGTERM, "1ms", "not drained within 1ms"}} {
		cmd := programtest.Command(t, "scenario", "-drain", test.drain, "stuck")
		var stderr strings.Builder
		cmd.Env, cmd.Stderr = append(cmd.Env, programtest.Env+"=stuck"), &stderr
		stdout := programtest.Start(t, cmd)
		programtest.ReadUntil(t, stdout, "running")
		if err := cmd.Process.Signal(test.first); err != nil {
			t.Fatal(err)
		}
		if test.says == "" {
			programtest.ReadUntil(t, stdout, "stopping: interrupted")
			programtest.Interrupt(t, cmd)
		}
		programtest.End(t, cmd, stdout, program.Interrupted)
		if !strings.Contains(stderr.String(), test.says) {
			t.Errorf("want %q in %q", test.says, stderr.String())
		}
	}
}
