//go:build unix

package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A real process gets the signal in the middle of more work than it can finish. It finishes its running work, and
// says so.
func TestInterrupt(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			const total = 600
			dir := t.TempDir()
			manyImages(t, dir, total)
			out := filepath.Join(t.TempDir(), "out")
			// One thumbnail after the other takes seconds, on any number of processors.
			cmd, stdout := start(t, "-in", dir, "-out", out, "-thumbnailers", "1")
			waitForThumbnail(t, stdout, filepath.Join(out, "thumbs"))
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(stdout)
			if err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitInterrupted {
				t.Errorf("ended with %v, want status %d", err, exitInterrupted)
			}
			if !strings.Contains(string(rest), "interrupted: ") || !strings.Contains(string(rest), "pipeline.interrupted") {
				t.Errorf("the report does not say so:\n%s", rest)
			}
			checkFinished(t, out, total)
		})
	}
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

func start(t *testing.T, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := startDemo(t, args...)
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(stdout)
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
	for _, left := range []string{"metadata.db-wal", "metadata.db-shm", "metadata.db-journal"} {
		if _, err := os.Stat(filepath.Join(out, left)); err == nil {
			t.Errorf("%s is left over", left)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(out, "metadata.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT path, coalesce(thumb, '') FROM files`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var path, thumb string
		if err := rows.Scan(&path, &thumb); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(out, filepath.FromSlash(thumb))); thumb == "" || err != nil {
			t.Errorf("%s has the thumbnail %q: %v", path, thumb, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	coretest.Check(t, n != 0 && n < total, "%d rows of %d images: nothing was interrupted", n, total)
}

// After an interrupt, the workers finish their running work, and nothing stays behind.
func TestInterruptDurable(t *testing.T) {
	t.Parallel()
	inPlaces(t, func(t *testing.T, env string) {
		cmd := startDemo(t, "durable", "-items", "2000")
		cmd.Env, cmd.Stderr = append(cmd.Env, env), t.Output()
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stdout := bufio.NewReader(pipe)
		for kills := 0; kills < 2; {
			line, err := stdout.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			kills += strings.Count(line, "kill -9")
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(stdout)
		err = cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitInterrupted {
			t.Errorf("ended with %v, want status %d", err, exitInterrupted)
		}
		for _, want := range []string{"interrupted: ", " waiting, 0 lost\n", " 0 twice, 0 out of the order"} {
			coretest.Check(t, strings.Contains(string(rest), want), "want %q in:\n%s", want, rest)
		}
		nothingLeft(t, cmd.Env)
	})
}
