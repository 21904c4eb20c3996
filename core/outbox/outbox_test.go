package outbox_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/outbox"
)

// Effects run in the order in which they were added, one at a time, on any goroutine. All
// have run when the last Run has returned.
func TestOrder(t *testing.T) {
	var (
		out  outbox.Outbox
		mu   sync.Mutex
		n    int
		seen []int // without a lock: effects do not overlap
		wg   sync.WaitGroup
	)
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				mu.Lock()
				v := n
				n++
				out.Add(func() { seen = append(seen, v) })
				mu.Unlock()
				out.Run()
			}
		})
	}
	wg.Wait()
	if len(seen) != n || !slices.IsSorted(seen) {
		t.Fatalf("%d effects ran, of %d; in order: %t", len(seen), n, slices.IsSorted(seen))
	}
}

// An effect that adds another one and calls Run is not interrupted by it.
func TestRunInsideAnEffect(t *testing.T) {
	var out outbox.Outbox
	var seen []string
	out.Add(func() {
		out.Add(func() { seen = append(seen, "added inside") })
		out.Run()
		seen = append(seen, "first")
	})
	out.Run()
	if want := []string{"first", "added inside"}; !slices.Equal(seen, want) {
		t.Fatalf("ran %q, not %q", seen, want)
	}
}

// An effect that panics or ends its goroutine does not keep the others from running.
func TestEffectsThatDoNotReturn(t *testing.T) {
	for name, leave := range map[string]func(){
		"panic":  func() { panic("on purpose") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			var out outbox.Outbox
			ran := 0
			out.Add(leave)
			out.Add(func() { ran++ })
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { recover() }()
				out.Run()
			}()
			<-done
			out.Add(func() { ran++ })
			out.Run()
			if ran != 2 {
				t.Fatalf("%d of 2 others ran", ran)
			}
		})
	}
}

// Beyond Max, effects are dropped and counted.
func TestMax(t *testing.T) {
	out := outbox.Outbox{Max: 2}
	ran := 0
	for range 5 {
		out.Add(func() { ran++ })
	}
	out.Run()
	if ran != 2 || out.Dropped() != 3 {
		t.Fatalf("%d ran and %d were dropped, not 2 and 3", ran, out.Dropped())
	}
}
