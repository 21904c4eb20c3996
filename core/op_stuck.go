// This file decides which bodies are stuck.

package core

import (
	"slices"

	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/internal/clock"
)

// stuckWatch finds bodies that do not return. It has no lock and no clock. Times are offsets
// of a clock.
type stuckWatch struct {
	after, afterEnd, timeout int64 // StuckAfter, StuckAfterCancel and Timeout; 0: none
	bodies                   map[OperationID]watchedBody
	n                        int // bodies that are stuck
}

// watchedBody is the body of an operation that has started and not ended.
type watchedBody struct {
	does           doing
	started, since int64 // since: when it began to do that
	ended          int64 // when its context was cancelled; 0: it was not
	cause          error
	goroutine      uint64
	stuckSince     int64
	stuck          bool
	because        error // if it is stuck since the end of its context: the cause
}

// why says why the body is stuck. It calls a method of the cause, so no lock is held.
func (b *watchedBody) why() string {
	const why = "its body has not returned"
	if b.because == nil {
		return why
	}
	return why + " after the end of its context (" + guard.Text(b.because) + ")"
}

// doing is what a body does.
type doing uint8

const (
	runs      doing = iota
	suspended       // waits without a slot
	wants           // has waited, and wants its slot back
)

func newStuckWatch(o *Options) stuckWatch {
	s := stuckWatch{after: int64(max(0, o.StuckAfter)), afterEnd: int64(max(0, o.StuckAfterCancel)), timeout: int64(o.Timeout)}
	if s.after+s.afterEnd > 0 {
		s.bodies = map[OperationID]watchedBody{}
	}
	return s
}

// note records what a body does from now on. It returns when the body will be stuck, or never.
func (s *stuckWatch) note(id OperationID, does doing, now int64) (at int64) {
	b, ok := s.bodies[id]
	if !ok {
		b.started = now
	}
	b.does, b.since = does, now
	return s.keep(id, b)
}

// cancelled records that the context of a body has ended. It returns when the body will be stuck, or
// never.
func (s *stuckWatch) cancelled(id OperationID, cause error, now int64) (at int64) {
	b, ok := s.bodies[id]
	if !ok || b.ended != 0 {
		return clock.Never
	}
	b.ended, b.cause = now, cause
	return s.keep(id, b)
}

func (s *stuckWatch) on(id OperationID, goroutine uint64) {
	b := s.bodies[id]
	b.goroutine = goroutine
	s.bodies[id] = b
}

func (s *stuckWatch) keep(id OperationID, b watchedBody) (at int64) {
	s.bodies[id] = b
	at, _, _ = s.due(&b)
	return at
}

// returned forgets a body.
func (s *stuckWatch) returned(id OperationID) {
	if s.bodies[id].stuck {
		s.n--
	}
	delete(s.bodies, id)
}

// due returns when a body will be stuck, and since when it should have returned. If that is since the
// end of its context, it returns the cause.
func (s *stuckWatch) due(b *watchedBody) (at, since int64, cause error) {
	at = clock.Never
	if b.stuck || b.does == wants {
		return at, 0, nil
	}
	if s.after > 0 && b.does == runs {
		at, since = clock.Later(b.since, s.after), b.since
	}
	end, cause := b.ended, b.cause
	if late := clock.Later(b.started, s.timeout); s.timeout > 0 && (end == 0 || late < end) {
		end, cause = late, ErrTimeout
	}
	if b.does == runs {
		end = max(end, b.since)
	}
	if cause != nil && s.afterEnd > 0 && clock.Later(end, s.afterEnd) < at {
		return clock.Later(end, s.afterEnd), end, cause
	}
	return at, since, nil
}

// find marks the bodies that are stuck and were not before, and lists their operations. It returns
// when the next one will be stuck, or never.
func (s *stuckWatch) find(now int64) (found []OperationID, next int64) {
	next = clock.Never
	for id, b := range s.bodies {
		at, since, cause := s.due(&b)
		if at > now {
			next = min(next, at)
			continue
		}
		b.stuckSince, b.stuck, b.because = since, true, cause
		s.bodies[id] = b
		s.n++
		found = append(found, id)
	}
	slices.Sort(found)
	return found, next
}
