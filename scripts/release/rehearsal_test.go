package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// TestRehearsalOfTheRealTree releases the checkout that the test runs in, in a copy. That takes
// minutes, and go run ./scripts/release does the same. TestReleases has a small tree.
func TestRehearsalOfTheRealTree(t *testing.T) {
	if os.Getenv("EPHEMERAL_REHEARSAL") == "" {
		t.Skip("EPHEMERAL_REHEARSAL is not set")
	}
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	c := checkout{filepath.Clean(root)}
	if err := c.rehearse(t.Context(), time.Now(), t.Output()); err != nil {
		t.Fatal(err)
	}
}

// Here the workspace hides that a requirement is missing.
func TestRehearsalFails(t *testing.T) {
	c := newClone(t)
	c.replace("complete/go.mod", "require "+prefix+"core v0.1.0\n", "")
	c.commit()
	before := c.everything()
	if out, err := c.release(false); err == nil || !strings.Contains(err.Error(), "v0.1.0 fails in a copy: complete: go list ") {
		t.Errorf("got %v\n%s", err, out)
	}
	if got := c.everything(); got != before {
		t.Errorf("left\n%s\nwant\n%s", got, before)
	}
}
