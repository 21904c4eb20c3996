package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// TestRehearsalOfTheRealTree releases the checkout that the test runs in, in a copy. The
// short form is part of TestReleases, with a small tree.
func TestRehearsalOfTheRealTree(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("EPHEMERAL_LONG is not set")
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
