package longwindowdemo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/patterns/longwindowdemo"
)

// The window shows the most recent operations. It may be smaller than the number of
// operations that run at once: those that run are never evicted.
func TestTheWindowShowsTheMostRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ items, window, tracked, oldest int }{{100, 10, 10, 82}, {10, 100, 10, 0}, {100, 1, 1, 92}, {0, 1, 0, -1}} {
			r, err := longwindowdemo.Run(t.Context(), c.items, c.window, time.Second)
			require.NoError(t, err)
			assert.Equal(t, c.tracked, r.Tracked)
			assert.GreaterOrEqual(t, r.Oldest, c.oldest)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := longwindowdemo.Run(t.Context(), -1, 1, 0)
		assert.EqualError(t, err, "longwindowdemo: items is -1, but must not be negative")
		_, err = longwindowdemo.Run(t.Context(), 1, 0, 0)
		assert.EqualError(t, err, "longwindowdemo: window is 0, but must be positive")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = longwindowdemo.Run(ctx, 5000, 1, time.Minute)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
