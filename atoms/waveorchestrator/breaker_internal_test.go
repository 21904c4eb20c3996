package waveorchestrator

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What was admitted in the past says nothing any more.
func TestBreakerForgetsOldTickets(t *testing.T) {
	b := newBreaker(1, 10)
	old, ok := b.admit(0)
	require.True(t, ok)
	slow, _ := b.admit(0)
	assert.True(t, b.failure(old, 0))
	assert.False(t, b.success(slow), "a success from before does not close it")
	assert.Equal(t, BreakerOpen, b.status)
	assert.False(t, b.failure(slow, 5), "nor does a failure keep it open for longer")
	_, ok = b.admit(9)
	assert.False(t, ok)
	probe, ok := b.admit(10)
	require.True(t, ok)
	b.release(slow)
	_, ok = b.admit(10)
	assert.False(t, ok, "one from before does not give the probe back")
	assert.True(t, b.success(probe))
	assert.False(t, b.failure(probe, 11), "a ticket comes back once")
	assert.Equal(t, BreakerClosed, b.status)
}

// Random steps: never two probes at once; open until the time is over and not longer;
// closed until there were that many failures in a row.
func TestBreakerRandom(t *testing.T) {
	steps := 200_000
	if testing.Short() {
		steps = 20_000
	}
	rng := rand.New(rand.NewPCG(1, 2))
	b := newBreaker(3, 50)
	type ticket struct {
		number uint64
		probe  bool
	}
	var (
		now    time.Duration
		out    []ticket // not come back yet
		inRow  int
		opened time.Duration
		open   bool
		probes int
		since  uint64 // tickets from before do not count
	)
	for range steps {
		now += time.Duration(rng.IntN(4))
		if rng.IntN(2) == 0 || len(out) == 0 {
			number, ok := b.admit(now)
			want := !open || now >= opened+50 && probes == 0
			require.Equal(t, want, ok)
			if ok {
				out = append(out, ticket{number, open})
				if open {
					probes++
					since = number
				}
			}
			continue
		}
		i := rng.IntN(len(out))
		k := out[i]
		out = append(out[:i], out[i+1:]...)
		counts := k.number >= since && (!open || k.probe)
		if k.probe {
			probes--
		}
		switch rng.IntN(3) {
		case 0:
			require.Equal(t, k.probe, b.success(k.number))
			if counts {
				inRow = 0
				if open {
					open, since = false, k.number+1
				}
			}
		case 1:
			got := b.failure(k.number, now)
			if counts {
				inRow++
			}
			want := counts && (open || inRow >= 3)
			require.Equal(t, want, got)
			if want {
				open, opened = true, now
			}
		case 2:
			b.release(k.number)
		}
		require.Equal(t, inRow, b.failures)
	}
}
