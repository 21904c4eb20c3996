package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Each program is one file, which a reader takes in at once.
func TestOneShortFile(t *testing.T) {
	files, err := filepath.Glob("*/main*.go")
	if err != nil || len(files) != 2*6 {
		t.Fatalf("not six programs with a test each: %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if n := bytes.Count(text, []byte("\n")); err != nil || n > 150 {
			t.Errorf("%s: %d lines, and 150 are allowed; %v", file, n, err)
		}
	}
}
