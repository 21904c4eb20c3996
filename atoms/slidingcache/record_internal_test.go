package slidingcache

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A record that was found expired stays so for callers that have read the clock before.
func TestExpiredStaysExpired(t *testing.T) {
	s := times{sliding: 10, absolute: 25, refresh: never, stale: 5}
	f := s.detailsOf(0, 0)
	assert.Equal(t, fresh, s.check(f, 9, 10))
	assert.Equal(t, fresh, s.check(f, 3, 10), "late")
	assert.Equal(t, fresh, s.check(f, 18, 10), "and it has not shortened its life")
	assert.Equal(t, outdated, s.check(f, 25, 10), "in spite of 18")
	assert.Equal(t, outdated, s.check(f, 24, 10), "late")
	assert.Equal(t, outdated, s.check(f, 29, 10))
	assert.Equal(t, nothing, s.check(f, 30, 10))
}
