package core

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
)

// A table finds the keys that are live, whatever its size was before. It becomes small again while few keys come and go,
// and when none is live.
func TestKeyTable(t *testing.T) {
	var table keyTable
	random := rand.New(rand.NewPCG(1, 2))
	live, texts := map[string]*keyState{}, []string(nil)
	obtain := func() {
		text := strconv.Itoa(random.IntN(3000))
		k := table.obtain(text, 1)
		if known, ok := live[text]; ok != (k == known) || k.text != text || k.running+k.pending > 0 || k.turns[0].key != k {
			t.Fatalf("key %s: got %+v, want %p", text, k, known)
		}
		if live[text] == nil {
			live[text], texts = k, append(texts, text)
		}
	}
	release := func() {
		i := random.IntN(len(texts))
		text := texts[i]
		texts[i] = texts[len(texts)-1]
		texts = texts[:len(texts)-1]
		table.release(live[text])
		delete(live, text)
	}
	check := func(most int) {
		t.Helper()
		n := 0
		for k := range table.all() {
			if n++; live[k.text] != k {
				t.Fatalf("key %q is listed, but not live", k.text)
			}
		}
		if n != len(live) || n != table.n || len(table.chains) > most {
			t.Fatalf("got %d keys, %d of them listed, in %d chains; want %d keys in at most %d chains", table.n, n, len(table.chains), len(live), most)
		}
	}
	for i, peak := range []int{1, 60, 1500, 1500, 30, 1500, 1} {
		for len(live) < peak {
			obtain()
		}
		check(2048)
		for range 8 * 1500 { // so many come and go
			obtain()
			for len(live) >= max(2, min(peak, 20)) {
				release()
			}
		}
		check(8 * 64)
		for len(live) > 0 {
			release()
		}
		check(64)
		if i%2 == 0 {
			runtime.GC() // takes a large table that is idle
		}
	}
}
