package core_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// flood is how many unrelated signals pass.
func flood() int { return core.Often(10_000_000, 400_000) }

// A very large number of unique names leaves no memory behind.
func TestFloodLeavesNoMemory(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector keeps memory of its own")
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	s := core.NewSink(core.SinkOptions{Capacity: 1000})
	m := s.Monitor("file.*", time.Nanosecond)
	for i := range 5000 { // what a full window needs is there
		s.Raise("file.saved:/tmp/" + strconv.Itoa(i))
	}
	before := heap()
	for i := range flood() {
		s.Raise("file.saved:/tmp/" + strconv.Itoa(i))
		if i%1000 == 0 {
			s.Has("file.*")
			s.Has("file.saved:" + strconv.Itoa(i))
			m.Count()
		}
	}
	if grown := heap() - before; grown > 256<<10 {
		t.Errorf("%d bytes left behind", grown)
	}
	runtime.KeepAlive(s)
}
