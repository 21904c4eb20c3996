package history

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/long"
)

// The test compares a history with a list of everything, with bursts and long breaks.
func TestHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range long.Often(30, 6) {
		now := random.Int64N(1000)
		begin := now
		h := Start(4, now)
		var at []int64
		for range 3000 {
			now += int64(random.ExpFloat64() * float64([]time.Duration{time.Second, time.Second, 20 * time.Second, 4 * time.Minute}[random.IntN(4)]))
			if random.IntN(3) > 0 {
				h.Add(2, int64(time.Second), int64(time.Hour), now)
				at = append(at, now)
			}
			span := []time.Duration{time.Minute, 5 * time.Minute, time.Hour}[random.IntN(3)]
			after := func(t int64) (n uint64) {
				for _, a := range slices.Backward(at) {
					if a < t {
						break
					}
					n++
				}
				return n
			}
			found := h.Within(span, now)
			got := found[2].Count()
			if most, least := after(max(begin, now-int64(span))), after(now-int64(span)+int64(span)/12); got > most || got < least {
				t.Fatalf("%d in the last %v, want %d to %d", got, span, least, most)
			}
			if found[0].Count()+found[1].Count() != 0 || found[3].Count() != got || got > 0 && found[3].Quantile(0.5) < time.Hour {
				t.Fatalf("another histogram has %v", found)
			}
		}
	}
}
