package durable

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// When a process that was stopped for longer than its lease goes on, it starts no body, even if the
// timer of the lease has not fired yet.
func TestNoBodyStartsAfterTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(Node{Lease: 10 * time.Second}, time.Now())
		s.extend(time.Now().Add(time.Second))
		s.fence.Stop() // it fires late
		time.Sleep(10*time.Second - 1)
		early, late := &run{session: s}, &run{session: s}
		assert.True(t, early.begin())
		time.Sleep(time.Nanosecond)
		assert.False(t, late.begin())
		s.lose(nil)
	})
}
