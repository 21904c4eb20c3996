package main

import (
	"os"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// An operation seldom comes back to a file that it has left.
func TestWay(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("it compiles core: set EPHEMERAL_LONG")
	}
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	way, err := of(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if n := returns(way); len(way) < 10 || n > 14 {
		t.Errorf("%d returns to a file already left, at most 14 are wanted: %v", n, way)
	}
}
