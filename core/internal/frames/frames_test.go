package frames_test

import (
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/internal/frames"
)

//go:noinline
func nested(depth int, look func()) {
	if depth == 0 {
		look()
		return
	}
	nested(depth-1, look)
}

// Of counts calls on this goroutine, also beyond the first 64 frames, and stops at the most that it is asked for.
func TestOf(t *testing.T) {
	name := frames.Prefix() + "nested"
	for depth, want := range map[int]int{0: 1, 9: 10, 199: 200, 999: 500} {
		nested(depth, func() {
			if got := frames.Of(name, 500); got != want {
				t.Errorf("at depth %d: got %d, want %d", depth, got, want)
			}
		})
	}
	if got := frames.Of(name, 500); got != 0 {
		t.Errorf("outside: got %d, want 0", got)
	}
}

func TestPrefix(t *testing.T) {
	if got := frames.Prefix(); !strings.HasSuffix(got, "/frames_test.") {
		t.Errorf("got %q, want that of this package", got)
	}
}

// The number of a goroutine does not change, and no other goroutine has it.
func TestGoroutine(t *testing.T) {
	here, there := frames.Goroutine(), make(chan uint64)
	go func() { there <- frames.Goroutine() }()
	if other := <-there; here == 0 || other == 0 || other == here || frames.Goroutine() != here {
		t.Errorf("got %d, then %d, and %d elsewhere", here, frames.Goroutine(), other)
	}
}
