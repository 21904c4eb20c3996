package durable

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Snooze returns an error with which a body asks to be run again, after d at the earliest, and at
// once if d is 0. The attempt does not count. Later items of its key wait for the item. The reason is for people:
// [Item].Note has it until the item is claimed again, and [Queue.Explain] says it. The error stands for no failure
// ([guard.Failed]): breakers, retriers and spans do not count it.
func Snooze(d time.Duration, reason ...string) error {
	return snoozed{max(0, d), strings.Join(reason, "; ")}
}

type snoozed struct {
	span   time.Duration
	reason string
}

// IsSnooze reports whether an error, or one that it wraps, is of [Snooze].
func IsSnooze(err error) bool {
	_, is := guard.As[snoozed](err)
	return is
}

func (s snoozed) Failed() bool { return false }

func (s snoozed) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("durable: run again in %v: %s", s.span, s.reason), ": ")
}

// Permanent marks an error that further attempts cannot change. If a body returns it, the item
// is dead. Errors marked by retry.Permanent have the same effect. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

type permanent struct{ error }

func (p permanent) Unwrap() error   { return p.error }
func (p permanent) Permanent() bool { return true }

// Cancel marks an error that says that the item need not run any more. If a body returns it, the item becomes
// Cancelled, with the text of err, and is no dead letter. As with [Snooze], the error stands for no failure. Cancel(nil) is nil.
func Cancel(err error) error {
	if err == nil {
		return nil
	}
	return cancelled{err}
}

type cancelled struct{ error }

func (c cancelled) Unwrap() error { return c.error }
func (c cancelled) Failed() bool  { return false }

// isPermanent reports whether an error has a method Permanent that returns true, such as an
// error of retry.Permanent. If a method of the error panics, it does not.
func isPermanent(err error) bool {
	is, _ := guard.Ask(err, func(mark interface{ Permanent() bool }) bool { return mark.Permanent() })
	return is
}

// A policy decides what becomes of items.
type policy struct {
	maxAttempts         int // negative: no limit
	backoff, maxBackoff time.Duration
	backoffFunc         func(attempt int, err error) time.Duration // nil: backoff, doubled
	halt                bool
}

// most is how many attempts an item has; not positive: no limit.
func (p policy) most(i Item) int { return cmp.Or(i.MaxAttempts, p.maxAttempts) }

// refuse returns the end of a claim whose body must not run, and true; otherwise false.
func (p policy) refuse(i Item) (End, bool) {
	switch {
	case i.Cancel != "":
		return End{Kind: EndCancelled, Err: i.Cancel}, true
	case p.most(i) > 0 && i.Attempts > p.most(i):
		text := fmt.Sprintf("durable: all %d attempts have begun, and the last one, without other items beside it, was lost with its process", p.most(i))
		if i.Err != "" {
			text += "; the error before was: " + i.Err
		}
		return p.dead(text), true
	}
	return End{}, false
}

// after returns the end of a claim whose operation ended with status and err. Jitter is from 0
// to 1.
func (p policy) after(i Item, status core.Status, err error, jitter float64) End {
	snooze, snoozes := guard.As[snoozed](err)
	_, cancels := guard.As[cancelled](err)
	switch {
	case status == core.StatusSucceeded:
		return End{Kind: EndDone}
	case status != core.StatusFailed && i.Cancel != "":
		return End{Kind: EndCancelled, Err: i.Cancel}
	case status != core.StatusFailed: // the process stops, or has lost its lease
		return End{Kind: EndGivenBack}
	case snoozes:
		return End{Kind: EndSnoozed, After: snooze.span, Err: clean(snooze.reason)}
	case cancels:
		return End{Kind: EndCancelled, Err: clean(guard.Text(err))}
	case isPermanent(err), p.most(i) > 0 && i.Attempts >= p.most(i):
		return p.dead(guard.Text(err))
	}
	return End{Kind: EndRetry, After: p.pause(i.Attempts, err, jitter), Err: clean(guard.Text(err))}
}

func (p policy) dead(text string) End {
	if p.halt {
		return End{Kind: EndHalted, Err: clean(text)}
	}
	return End{Kind: EndDead, Err: clean(text)}
}

// pause returns how long to wait after the attempt, which ended with err: what the error asks for, or what BackoffFunc says, and
// else the backoff.
func (p policy) pause(attempt int, err error, jitter float64) time.Duration {
	asked, _ := guard.Ask(err, func(e interface{ RetryAfter() time.Duration }) time.Duration { return e.RetryAfter() })
	if asked <= 0 && p.backoffFunc != nil {
		d, panicked := guard.Value("Options.BackoffFunc", func() time.Duration { return p.backoffFunc(attempt, err) })
		if panicked == nil {
			return min(max(0, d), p.maxBackoff)
		}
	}
	if asked > 0 {
		return min(asked, p.maxBackoff)
	}
	return p.delay(attempt, jitter)
}

// delay is the backoff after the attempt.
func (p policy) delay(attempt int, jitter float64) time.Duration {
	d := p.backoff
	for range attempt - 1 {
		d += min(d, p.maxBackoff-d)
	}
	return d/2 + time.Duration(jitter*float64(d/2))
}

// clean makes a text valid for a store.
func clean(text string) string {
	text = strings.ReplaceAll(text, "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}

// orphans compares the claims of a node in the store, as a beat has read them, with those that the
// process knew when the beat began. The process does not know a claim while the turn that makes it is
// under way, or if the answer of that turn was lost. The first result is all unknown claims, with
// the number of turns that had begun when they were first seen. The second is the claims of which the process
// will never know: all turns that can have made them were over before the beat began. Seen is the first
// result of the previous call.
func orphans(seen map[Held]int64, claims []Held, known map[ItemID]*run, over, begun int64) (map[Held]int64, []Held) {
	still, lost := map[Held]int64{}, []Held(nil)
	for _, c := range claims {
		c.Cancel = ""
		if r := known[c.ID]; r != nil && r.item.Token == c.Token {
			continue
		}
		first, before := seen[c]
		if !before {
			first = begun
		} else if first <= over {
			lost = append(lost, c)
		}
		still[c] = first
	}
	return still, lost
}
