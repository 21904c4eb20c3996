// This file decides which times of waiting and running are counted.

package core

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core/durations"
	"github.com/ephemeralgo/ephemeral/core/internal/history"
)

// Times are how long operations that have ended waited and ran. Operations that did not start
// are not counted.
type Times struct {
	Lane  string `json:"lane,omitempty"`  // only operations of this lane; "": of all lanes
	Class string `json:"class,omitempty"` // only operations of this class; "": of all classes

	Waiting durations.Histogram `json:"waiting"` // from Enqueue to the start
	Running durations.Histogram `json:"running"` // from the start to the end, the time in Suspend included
}

// Times returns how long operations waited and ran within the last span: a minute to an
// hour, and 0 is an hour. The span that is covered may be shorter by a twelfth of the next
// of 1, 5 and 60 minutes. The first of the list is for all operations, then come the lanes,
// then the classes.
//
// The first call begins to count, and returns nothing but zeros. From then on, each
// operation costs a few nanoseconds more, and the coordinator keeps 80 kB for itself or, if
// it has them, for each lane and class.
func (c Control) Times(within time.Duration) []Times {
	e := c.made()
	if within <= 0 || within > time.Hour {
		within = time.Hour
	}
	e.mu.Lock()
	now := e.clock.Now()
	if e.times == nil {
		e.times = history.Start(2*(len(e.lanes)+len(e.classes)-1), now)
	}
	counts := e.times.Within(within, now)
	e.mu.Unlock()
	list := make([]Times, 1, 1+len(counts)/2)
	for i := range e.lanes {
		list[0].Waiting.Merge(&counts[2*i])
		list[0].Running.Merge(&counts[2*i+1])
	}
	for i, l := range e.opts.Lanes {
		list = append(list, Times{Lane: l.Name, Waiting: counts[2*i], Running: counts[2*i+1]})
	}
	for i, c := range e.opts.Classes {
		i += len(e.lanes)
		list = append(list, Times{Class: c.Name, Waiting: counts[2*i], Running: counts[2*i+1]})
	}
	return list
}
