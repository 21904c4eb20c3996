package echo

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// capturer selects the last words among the signals of an operation.
type capturer[P any] struct {
	pattern        string
	activate       string // "": from the first
	skipActivation bool
	filter         func(core.Signal) bool
	maxAge         time.Duration
	max            int
}

// capture returns the newest of what signals says, and how many older ones there are
// beyond the limit.
func (c *capturer[P]) capture(signals []core.Signal, now time.Time) (captures []Capture[P], missed int) {
	active := c.activate == ""
	for _, s := range signals {
		if !active {
			if !s.Matches(c.activate) {
				continue
			}
			if active = true; c.skipActivation {
				continue
			}
		}
		if c.maxAge > 0 && now.Sub(s.Time) > c.maxAge {
			continue
		}
		p, ok := c.payload(s)
		if !ok || c.filter != nil && !c.filter(s) {
			continue
		}
		captures = append(captures, Capture[P]{s, p})
	}
	if missed = len(captures) - c.max; missed > 0 {
		return append([]Capture[P](nil), captures[missed:]...), missed
	}
	return captures, 0
}

// payload returns the payload of a signal that is to be captured.
func (c *capturer[P]) payload(s core.Signal) (p P, ok bool) {
	if !s.Matches(c.pattern) {
		return p, false
	}
	if s.Payload() == nil {
		return p, takesAnything[P]()
	}
	p, ok = s.Payload().(P)
	return p, ok
}

// takesAnything reports whether P is any, so that having no payload is one.
func takesAnything[P any]() bool {
	var p P
	_, ok := any(&p).(*any)
	return ok
}
