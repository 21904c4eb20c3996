package hook

import (
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/internal/frames"
)

// MaxNested is how many deliveries there can be on the stack of a goroutine. Handlers may raise
// signals whose handlers raise again, and so on. More than so many are an endless loop.
//
// To refuse the deepest raise is not enough if handlers raise again when their first raise returns:
// two such handlers would be called 2 to the power of MaxNested times. So all raises of the goroutine
// are refused until it has left its deliveries.
const MaxNested = 64

// loops has the goroutines that must leave their deliveries, and leaving is their number.
var (
	leaving atomic.Int64
	loops   sync.Map // of their numbers
)

// Crowded reports whether a delivery to hooks may be nested too deep: [TooDeep] says for certain. The
// lock of the list is held.
func Crowded[E any](hooks []*Hook[E]) bool {
	for _, h := range hooks {
		if h.early+h.Late.Load()-h.left.Load() >= int64(h.limit) || leaving.Load() > 0 {
			return true
		}
	}
	return false
}

// TooDeep reports whether this goroutine must leave its deliveries before it delivers anything else.
func TooDeep() bool {
	depth := Deliveries(MaxNested)
	if depth == 0 {
		return false
	}
	number := frames.Goroutine()
	_, must := loops.Load(number)
	if !must && depth == MaxNested {
		must = true
		loops.Store(number, nil)
		leaving.Add(1)
	}
	return must
}

// hasLeft lets this goroutine deliver again if it has left all deliveries.
func hasLeft() {
	if Deliveries(1) > 0 {
		return
	}
	if _, was := loops.LoadAndDelete(frames.Goroutine()); was {
		leaving.Add(-1)
	}
}

// Calm is called with hooks whose delivery is not nested too deep. A hook that was made deep inside
// of deliveries is one like others from then on. The lock of the list is held.
func Calm[E any](hooks []*Hook[E]) {
	for _, h := range hooks {
		h.limit = MaxNested
	}
}
