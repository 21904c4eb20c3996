package durable

import (
	"context"
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

// held is a store that notes what is recorded.
type held struct {
	Store
	got []Record
}

func (h *held) Record(_ context.Context, _ string, records []Record) ([]bool, error) {
	h.got = append(h.got, records...)
	return []bool{false, true}[2-len(records):], nil
}

// A body that outlives its claim writes under its own token, also together with the next claim of the item.
func TestRecordsOfTwoClaims(t *testing.T) {
	h := &held{Store: Memory()}
	opts, err := Options{}.resolved()
	if err != nil {
		t.Fatal(err)
	}
	f := newFlows(h, opts, policy{}, nil)
	old, next := &recording{Record: Record{ID: 1, Token: 7, Steps: []Step{{Name: "a"}}}}, &recording{Record: Record{ID: 1, Token: 8, Steps: []Step{{Name: "b"}}}}
	if err := f.write(t.Context(), []*recording{old, next}, nil); err != nil || len(h.got) != 2 || old.current || !next.current {
		t.Errorf("got %v and %+v, want both claims, the second one current", err, h.got)
	}
}
