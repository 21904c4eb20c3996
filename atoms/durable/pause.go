package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Pause stops all processes from starting items of a queue, or only those of a class or a key: see [Queue.Pause].
type Pause struct {
	Class  string        `json:"class,omitempty"` // whose items wait
	Key    string        `json:"key,omitempty"`   // or this; both "": all items of the queue
	For    time.Duration `json:"-"`               // how long; 0: until Resume. At most 100 years
	Reason string        `json:"reason,omitempty"`
	// Auto is for a pause that a program sets, such as a circuit breaker: it never takes the place of a pause that ends later, and
	// after one of a key, [Claim].Trial is set.
	Auto bool `json:"auto,omitempty"`

	// These are set in answers.
	By    string    `json:"by,omitempty"`   // Options.Node of the process that has paused it
	Since time.Time `json:"since,omitzero"` // by the clock of the store
	Until time.Time `json:"until,omitzero"` // zero: until Resume
}

const (
	// MaxPauses is how many classes and keys of a queue can be paused at a time. Each claim must skip the next item of every
	// paused key, so many pauses make claims slower.
	MaxPauses = 1000
	// KeptPause is how long a store keeps the pause of a key after its end, for [Claim].Trial.
	KeptPause = 24 * time.Hour

	maxPause = 100 * 365 * 24 * time.Hour
)

// ErrPauses means that [MaxPauses] classes and keys of a queue are paused.
var ErrPauses = errors.New("durable: too many classes and keys of the queue are paused")

// Pause stops all processes from starting items of the queue, of a class or of a key. It ends after For, or with Resume; a new Pause of
// the same takes the place of the old one; if it is Auto, only of one that ends earlier. Running items go on, and Enqueue still adds items. Claims that
// begin or commit after Pause has returned obey it. The end of For is found at the next Poll. [Queue.Explain], [Queue.Stats], status pages and
// the command "ephemeral top" say what is paused, why, by whom and since when. If [MaxPauses] are paused, the error is [ErrPauses].
func (q *Queue[T]) Pause(ctx context.Context, p Pause) error {
	return q.queue.pause(ctx, p)
}

func (q *queue) pause(ctx context.Context, p Pause) error {
	p.By, p.Reason, p.Since, p.Until = q.opts.Node, clean(p.Reason), time.Time{}, time.Time{}
	if p.For > 0 {
		p.For = max(p.For, time.Microsecond) // as exact as stores are
	}
	err := q.checkPause(p)
	if p.Class != "" {
		err = errors.Join(err, q.knows(p.Class))
	}
	if err == nil {
		err = q.fail("pause "+p.what(), q.store.Pause(ctx, q.opts.Name, p, true))
	}
	return err
}

// Resume ends the Pause of the queue, of p.Class or of p.Key. It ends no other pauses, and reads no other fields of p. The class
// need not be in Options any more.
func (q *Queue[T]) Resume(ctx context.Context, p Pause) error {
	return q.queue.resume(ctx, p)
}

func (q *queue) resume(ctx context.Context, p Pause) error {
	p = Pause{Class: p.Class, Key: p.Key}
	err := q.checkPause(p)
	if err == nil {
		err = q.fail("resume "+p.what(), q.store.Pause(ctx, q.opts.Name, p, false))
		q.wake(true)
	}
	return err
}

func (q *queue) checkPause(p Pause) error {
	var err error
	switch {
	case p.Class != "" && p.Key != "":
		err = fmt.Errorf("durable: queue %q: Pause has the class %q and the key %q, but must have one of them", q.opts.Name, p.Class, p.Key)
	case p.For < 0 || p.For > maxPause:
		err = fmt.Errorf("durable: queue %q: Pause.For is %v, but must be from 0 to 100 years", q.opts.Name, p.For)
	}
	return errors.Join(err, checkText("Pause.Class", p.Class), checkText("Pause.Key", p.Key))
}

func (p Pause) what() string {
	switch {
	case p.Class != "":
		return "class " + p.Class
	case p.Key != "":
		return "key " + p.Key
	}
	return "the queue"
}

// concerns reports whether the pause holds up items of a class and a key.
func (p Pause) concerns(class, key string) bool {
	return p.Class == "" && p.Key == "" || p.Class != "" && p.Class == class || p.Key != "" && p.Key == key
}

// String says what is paused, by whom, since when, until when, and why.
func (p Pause) String() string {
	var text strings.Builder
	text.WriteString(p.what() + " is paused")
	if p.By != "" {
		text.WriteString(" by " + p.By)
	}
	if !p.Since.IsZero() {
		text.WriteString(" since " + moment(p.Since))
	}
	if p.Until.IsZero() {
		text.WriteString(" until it is resumed")
	} else {
		text.WriteString(" until " + moment(p.Until))
	}
	if p.Reason != "" {
		text.WriteString(": " + p.Reason)
	}
	return text.String()
}

// compare is the order of pauses in answers.
func (p Pause) compare(other Pause) int {
	return cmp.Or(cmp.Compare(p.Class, other.Class), cmp.Compare(p.Key, other.Key))
}

// keyTimes is a rate of keys as stores have it. The longest span is 100 years.
func keyTimes(rate core.Rate) (every time.Duration, burst int) {
	if rate.PerSecond == 0 {
		return 0, 0
	}
	us := int64(1)
	if 1e6 > rate.PerSecond {
		us = int64(min(1e6/rate.PerSecond, float64(maxPause.Microseconds())))
		if float64(us) < 1e6/rate.PerSecond {
			us = min(us+1, maxPause.Microseconds())
		}
	}
	every = time.Duration(us) * time.Microsecond
	return every, max(1, min(rate.Burst, int(min(maxPause/every, 1<<30))))
}
