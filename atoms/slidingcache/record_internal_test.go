package slidingcache

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What was found to be over is so for those as well who have read the clock before.
func TestExpiredStaysExpired(t *testing.T) {
	s := spans{sliding: 10, absolute: 25, refresh: never, stale: 5}
	f := s.fateOf(0)
	assert.Equal(t, fresh, s.judge(f, 9))
	assert.Equal(t, fresh, s.judge(f, 3), "late")
	assert.Equal(t, fresh, s.judge(f, 18), "and it has not shortened its life")
	assert.Equal(t, outdated, s.judge(f, 25), "in spite of 18")
	assert.Equal(t, outdated, s.judge(f, 24), "late")
	assert.Equal(t, outdated, s.judge(f, 29))
	assert.Equal(t, nothing, s.judge(f, 30))
}

func TestDueIsForOne(t *testing.T) {
	s := spans{sliding: 10, absolute: never, refresh: 7}
	f := s.fateOf(0)
	assert.False(t, f.due(6, 7))
	assert.True(t, f.due(7, 7))
	assert.False(t, f.due(7, 7))
	assert.False(t, f.due(13, 7))
	assert.True(t, f.due(14, 7))
}
