package hook_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// nested delivers to h again and again while it is not nested too deep, as a raise does.
func nested(h **hook.Hook[int], mu *sync.Mutex, refused *int) func(int) {
	var panics atomic.Uint64
	return func(n int) {
		hooks := []*hook.Hook[int]{*h}
		mu.Lock()
		crowded := hook.Crowded(hooks)
		mu.Unlock()
		if crowded && hook.TooDeep() {
			*refused++
			return
		}
		hook.Deliver(hooks, false, &n, &panics)
	}
}

// The deepest delivery of a goroutine is refused, and so is each that follows until the goroutine has left all of them.
// Other goroutines deliver meanwhile, and afterwards this one does.
func TestNestedDeliveriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			h       *hook.Hook[int]
			mu      sync.Mutex
			calls   int
			refused int
			others  int
			loops   = true
		)
		deliver := nested(&h, &mu, &refused)
		h = hook.New(glob.Pattern{}, func(n int) {
			switch {
			case n < 0:
				others++
			case loops:
				calls++
				deliver(n)
				deliver(n)
				if calls == hook.MaxNested && refused == 2 { // the deepest call
					other := 0
					var wait sync.WaitGroup
					wait.Go(func() { nested(&h, &mu, &other)(-1) })
					wait.Wait()
					if other > 0 || others != 1 {
						t.Errorf("another goroutine was refused %d times, called %d times", other, others)
					}
				}
			}
		})
		deliver(1)
		if calls != hook.MaxNested || refused != hook.MaxNested+1 {
			t.Errorf("got %d calls, %d refused, want %d and %d", calls, refused, hook.MaxNested, hook.MaxNested+1)
		}
		loops, refused = false, 0
		if deliver(1); refused > 0 {
			t.Error("refused after the loop")
		}
		if hook.Crowded([]*hook.Hook[int]{h}) {
			t.Error("still crowded after the loop")
		}
	})
}

// A cancellation waits for the calls under way, and no call starts after it. Inside a call it does not wait.
func TestCancelIsABarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu     sync.Mutex
			all    list
			panics atomic.Uint64
			calls  int
		)
		h := hook.New(glob.Pattern{}, func(int) { calls++; time.Sleep(time.Minute) })
		cancel := h.Attach(&mu, &all)
		go hook.Deliver([]*hook.Hook[int]{h}, false, new(int), &panics)
		synctest.Wait()
		start := time.Now()
		cancel()
		hook.Deliver([]*hook.Hook[int]{h}, false, new(int), &panics)
		if took := time.Since(start); took != time.Minute || calls != 1 || len(all) != 0 {
			t.Errorf("took %v, got %d calls, %d hooks, want a minute, 1, 0", took, calls, len(all))
		}

		h = hook.New(glob.Pattern{}, func(int) { cancel() })
		cancel = h.Attach(&mu, &all)
		hook.Deliver([]*hook.Hook[int]{h}, false, new(int), &panics)
	})
}

// A panic ends one call, and is counted.
func TestPanicsAreCounted(t *testing.T) {
	var panics atomic.Uint64
	calls := 0
	bad, good := hook.New(glob.Pattern{}, func(int) { panic("on purpose") }), hook.New(glob.Pattern{}, func(int) { calls++ })
	hook.Deliver([]*hook.Hook[int]{bad, good, bad, good}, false, new(int), &panics)
	if calls != 2 || panics.Load() != 2 {
		t.Errorf("got %d calls, %d panics, want 2 and 2", calls, panics.Load())
	}
}

// A watermark tells each change, in turn, and the last state at the end.
func TestWatermark(t *testing.T) {
	var panics atomic.Uint64
	var told []bool
	w := hook.NewWatermark("OnX", 3, 1, func(over bool) { told = append(told, over) }, &panics)
	for _, n := range []int{0, 3, 2, 4, 1, 2, 0, 3} {
		if w.See(n) {
			w.Tell()
		}
	}
	if len(told) != 3 || !told[0] || told[1] || !told[2] {
		t.Errorf("got %v, want true, false, true", told)
	}
}

// list is the simplest owner of hooks.
type list []*hook.Hook[int]

func (l *list) Add(h *hook.Hook[int]) uint64 { *l = append(*l, h); return uint64(len(*l)) }

func (l *list) Remove(uint64) *hook.Hook[int] { h := (*l)[0]; *l = nil; return h }
