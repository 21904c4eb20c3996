package signalreactionshowcase_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/patterns/signalreactionshowcase"
)

// However many items there are, and however long they take, nothing is lost: the last number
// of items takes 11 s.
func TestEachReactionSeesEachItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, items := range []int{1, 8, min(runtime.NumCPU(), 8) * 2200} {
			r, err := signalreactionshowcase.Run(t.Context(), items)
			require.NoError(t, err)
			assert.Len(t, r.Signals, 2*items)
			r.Signals = nil
			assert.Equal(t, signalreactionshowcase.Result{Called: 2 * items, Dispatched: items, Polled: items, Deferred: items, Refused: 1}, r)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := signalreactionshowcase.Run(t.Context(), 0)
		assert.EqualError(t, err, "signalreactionshowcase: items is 0, but must be from 1 to 16777216")
		for _, items := range []int{-1, 1<<24 + 1, math.MaxInt} {
			_, err = signalreactionshowcase.Run(t.Context(), items)
			assert.ErrorContains(t, err, "but must be from 1 to 16777216")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Millisecond)
		defer cancel()
		_, err = signalreactionshowcase.Run(ctx, 100)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
