package core_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Follow shows each signal once, present ones first and in order, while others are raised.
func TestFollow(t *testing.T) {
	s := core.NewSink(core.SinkOptions{Capacity: 10000})
	s.Raise("x.0")
	s.Hold("x.held", "", 0)
	s.Raise("y")
	s.Raise("x.1")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				s.Raise("x.meanwhile")
			}
		})
	}
	var mu sync.Mutex
	var seqs []uint64
	var names []string
	cancel := s.Follow("x.*", func(signal core.Signal) {
		mu.Lock()
		defer mu.Unlock()
		seqs, names = append(seqs, signal.Seq), append(names, signal.Name)
		if signal.Name == "x.0" {
			go s.Has("x.0") // no lock is held
			mu.Unlock()
			s.Raise("x.inside") // comes after those present
			mu.Lock()
		}
		if signal.Name == "x.1" {
			panic("on purpose")
		}
	})
	wg.Wait()
	s.Raise("x.last")
	if !slices.Equal(names[:3], []string{"x.0", "x.held", "x.1"}) || names[len(names)-1] != "x.last" {
		t.Errorf("got %v ... %s", names[:3], names[len(names)-1])
	}
	slices.Sort(seqs)
	checkEqual(t, "signals", len(slices.Compact(seqs)), 4*200+5)
	checkEqual(t, "calls", len(seqs), 4*200+5)
	checkEqual(t, "panics", s.Stats().Panics, 1)
	checkEqual(t, "handlers", s.Stats().Handlers, 1)
	cancel()
	s.Raise("x.late")
	checkEqual(t, "calls after cancel", len(names), len(seqs))
	checkEqual(t, "handlers after cancel", s.Stats().Handlers, 0)
	checkPanics(t, func() { s.Follow("*", nil) })
}

// A handler that raises what it follows ends as one of Subscribe does.
func TestFollowLoop(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	s.Raise("x")
	defer s.Follow("x", func(core.Signal) { s.Raise("x") })()
	coretest.Check(t, s.Stats().Blocked != 0, "the loop was not refused")
}
