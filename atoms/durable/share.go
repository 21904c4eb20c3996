package durable

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
)

// All running queues of a store in this process have one share. It decides when an item
// runs alone. Until such an item has ended, nothing else starts.
type share struct {
	users int // guarded by shares
	began time.Time

	mu      sync.Mutex
	beats   map[time.Duration]*groupcommit.Committer[*beat] // by lease; none: the store cannot send several beats in one transaction
	wakes   map[any]func()                                  // of the queues
	busy    int                                             // running items, plus turns under way that may claim
	alone   any                                             // the queue that wants to run an item alone, or runs it; nil: none
	runs    bool                                            // the item has been claimed
	giveUp  time.Time                                       // if the process is still busy at this time, other queues start items again
	nothing time.Time                                       // no item runs alone before this time
}

const (
	aloneWait  = 10 * time.Second // how long a process starts nothing, so that an item can run alone
	alonePause = time.Minute      // the pause until the next try
)

var shares = struct {
	sync.Mutex
	of map[Store]*share
}{of: map[Store]*share{}}

// shareOf returns the share of a store for a queue with a lease, and a function that leaves it.
func shareOf(s Store, queue any, lease time.Duration, wake func()) (*share, func()) {
	shares.Lock()
	defer shares.Unlock()
	known := reflect.ValueOf(s).Comparable()
	h := &share{wakes: map[any]func(){}, beats: map[time.Duration]*groupcommit.Committer[*beat]{}, began: time.Now()}
	if known && shares.of[s] != nil {
		h = shares.of[s]
	} else if known {
		shares.of[s] = h
	}
	h.users++
	h.mu.Lock()
	if all, ok := s.(beater); ok && h.beats[lease] == nil {
		h.beats[lease] = core.Must(groupcommit.New(sendBeats(all, lease), groupcommit.Options{Name: "durable.beats", MaxBatch: MaxBatch}))
	}
	h.wakes[queue] = wake
	h.mu.Unlock()
	return h, func() {
		h.free(queue, false)
		h.mu.Lock()
		delete(h.wakes, queue)
		h.mu.Unlock()
		shares.Lock()
		defer shares.Unlock()
		if h.users--; h.users > 0 {
			return
		}
		if known {
			delete(shares.of, s)
		}
		for _, beats := range h.beats {
			beats.Close()
		}
	}
}

type beater interface {
	Beats(ctx context.Context, all []Beating) ([]Beaten, error)
}

// sendBeats returns the function that sends a group of beats, within a time limit.
func sendBeats(to beater, limit time.Duration) func(ctx context.Context, group []*beat, _ []error) error {
	return func(ctx context.Context, group []*beat, _ []error) error {
		slices.SortFunc(group, func(a, b *beat) int { return cmp.Compare(a.Node.ID, b.Node.ID) })
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		beatings := make([]Beating, len(group))
		for n, b := range group {
			beatings[n] = b.Beating
		}
		out, err := to.Beats(ctx, beatings)
		for n := range out {
			group[n].out = out[n]
		}
		return err
	}
}

// beat is the beat of one queue, in a group of beats.
type beat struct {
	Beating
	out Beaten
}

// next is when a queue beats next: all queues with one period beat at the same moment, so that
// their beats share a transaction.
func (h *share) next(now time.Time, every time.Duration) time.Time {
	return h.began.Add(now.Sub(h.began).Truncate(every) + every)
}

// beat sends a heartbeat. If it can, it sends heartbeats of other queues with the same lease with it: a call that
// hangs holds up no queue with a shorter lease.
func (h *share) beat(ctx context.Context, s Store, node Node, note string) (Beaten, error) {
	h.mu.Lock()
	beats := h.beats[node.Lease]
	h.mu.Unlock()
	if beats == nil {
		return s.Beat(ctx, node, note)
	}
	b := &beat{Beating: Beating{node, note}}
	err := beats.Do(ctx, b)
	if err != nil {
		return Beaten{}, err
	}
	if b.out.Gone {
		err = ErrLeaseLost
	}
	return b.out, err
}

// An entry says what a queue may claim.
type entry int

const (
	barred entry = iota
	open
	only // only only an item that must run alone
)

// enter begins a turn. The entry says what it may claim. If it may claim, call exit at its
// end.
func (h *share) enter(queue any, now time.Time) entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alone != nil && !h.runs && !now.Before(h.giveUp) {
		h.alone, h.nothing = nil, now.Add(alonePause)
	}
	switch {
	case h.alone == nil:
		h.busy++
		return open
	case h.alone == queue && !h.runs && h.busy == 0:
		h.busy++
		return only
	}
	return barred
}

// exit ends a turn or a run of a queue. If the process has nothing to do now, exit wakes another
// queue that waits for this moment. The queue itself looks again after each turn.
func (h *share) exit(queue any) {
	h.mu.Lock()
	h.busy--
	wake := h.wakes[h.alone]
	if h.busy > 0 || h.runs || h.alone == queue {
		wake = nil
	}
	h.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// add counts an item that starts.
func (h *share) add(alone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy++
	h.runs = h.runs || alone
}

// request asks for an item of the queue to run alone.
func (h *share) request(queue any, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alone == nil && !now.Before(h.nothing) {
		h.alone, h.runs, h.giveUp = queue, false, now.Add(aloneWait)
	}
}

// If the queue has stopped the other queues, free lets all queues start items again. If that was in vain, the pause
// until the next try is as long as the wait before it demands.
func (h *share) free(queue any, vain bool) {
	h.mu.Lock()
	var wakes []func()
	if h.alone == queue {
		h.alone, h.runs, h.nothing = nil, false, time.Now()
		if vain {
			h.nothing = h.nothing.Add(h.nothing.Sub(h.giveUp.Add(-aloneWait)) * (alonePause / aloneWait))
		}
		for _, wake := range h.wakes {
			wakes = append(wakes, wake)
		}
	}
	h.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}
