package filepipeline

import (
	"fmt"
	"sync"
	"testing"
)

func TestTurns(t *testing.T) {
	var turns turns
	var workers sync.WaitGroup
	counts := make([]int, 4) // one per key: a race, if two were to have the turn at once
	for i := range 400 {
		workers.Go(func() {
			defer turns.take(fmt.Sprint(i % 4))()
			counts[i%4]++
		})
	}
	workers.Wait()
	for key, n := range counts {
		if n != 100 {
			t.Errorf("key %d had %d turns, want 100", key, n)
		}
	}
	if len(turns.keys) != 0 {
		t.Errorf("%d idle keys are kept", len(turns.keys))
	}
}

func TestTurnsOfOtherKeysPass(t *testing.T) {
	var turns turns
	defer turns.take("a")()
	turns.take("b")() // would wait for ever
}
