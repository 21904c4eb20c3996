package sched

import (
	"github.com/ephemeralgo/ephemeral/core/internal/fifo"
	"github.com/ephemeralgo/ephemeral/core/internal/spin"
)

// A Room is what is known about the pending items of a class in a lane, and which callers wait for room
// there. Its free part follows from how many items were accepted and how many have left. One lock guards
// what was accepted, another one what has left: so a room may look full when it is not. While an item
// waits for a room, the room is full.
//
// The board has the waiting items as well, and starts those that need no room. So an item that cannot
// start keeps no other item waiting.
type Room struct {
	// Known is how many of the accepted are known to have left.
	Limit, Accepted, Known uint64

	_ spin.CacheLine

	Left    uint64            // items that are no longer pending
	Waiting int               // how many wait
	waiters fifo.Queue[*Item] // in the order in which they came; an item that is not Roomless has gone
}

// Full reports whether no item is certain to have room.
func (r *Room) Full() bool { return r.Accepted-r.Known >= r.Limit }

// Wait lets an item wait. The caller pushes it to the board.
func (r *Room) Wait(item *Item) {
	item.Flags |= Roomless
	r.Waiting++
	*r.waiters.Push() = item
}

// End ends the wait of an item that has left the board.
func (r *Room) End(item *Item) {
	item.Flags &^= Roomless
	if r.Waiting--; r.waiters.N > 2*r.Waiting { // rarely, because this looks at all waiters
		for range r.waiters.N {
			if item := r.take(); item.Flags&Roomless != 0 {
				*r.waiters.Push() = item
			}
		}
	}
}

// Take returns the item that has waited longest, or nil if none waits or the room is full. The caller
// accepts it, or ends its wait.
func (r *Room) Take() *Item {
	for r.Waiting > 0 && !r.Full() {
		if item := r.take(); item.Flags&Roomless != 0 {
			return item
		}
	}
	return nil
}

func (r *Room) take() *Item {
	item := *r.waiters.Get(0)
	r.waiters.Drop()
	return item
}
