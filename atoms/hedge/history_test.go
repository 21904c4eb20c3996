package hedge

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A history gives the answers of the sorted durations of the last calls.
func TestHistoryModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	h := newHistory(37)
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(random.IntN(50))
		if random.IntN(4) == 0 {
			d = failed
		}
		h.add(d)
		all = append(all, d)
		last := slices.Sorted(slices.Values(all[max(0, len(all)-37):]))
		at, _ := slices.BinarySearch(last, 0)
		require.Equal(t, at, h.errs)
		require.Equal(t, last[at:], h.sorted)
	}
}
