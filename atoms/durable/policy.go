package durable

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Snooze returns an error with which a body asks to be run again, after d at the earliest, and at
// once if d is 0. The attempt does not count. Later items of its key wait for the item. The reason is for people:
// [Item].Note has it until the item is claimed again, and [Queue.Explain] says it.
func Snooze(d time.Duration, reason ...string) error {
	return snoozed{max(0, d), strings.Join(reason, "; ")}
}

type snoozed struct {
	span   time.Duration
	reason string
}

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

// isPermanent reports whether an error has a method Permanent that returns true, such as an
// error of retry.Permanent.
func isPermanent(err error) bool {
	mark, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err)
	return ok && mark.Permanent()
}

// A policy decides what becomes of items.
type policy struct {
	maxAttempts         int // negative: no limit
	backoff, maxBackoff time.Duration
	halt                bool
}

// refuse returns the end of a claim whose body must not run, and true; otherwise false.
func (p policy) refuse(i Item) (End, bool) {
	switch {
	case i.Cancel != "":
		return End{Kind: EndCancelled, Err: i.Cancel}, true
	case p.maxAttempts > 0 && i.Attempts > p.maxAttempts:
		text := fmt.Sprintf("durable: all %d attempts have begun, and the last one, without other items beside it, was lost with its process", p.maxAttempts)
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
	var snooze snoozed
	switch {
	case status == core.StatusSucceeded:
		return End{Kind: EndDone}
	case status != core.StatusFailed && i.Cancel != "":
		return End{Kind: EndCancelled, Err: i.Cancel}
	case status != core.StatusFailed: // the process stops, or has lost its lease
		return End{Kind: EndGivenBack}
	case errors.As(err, &snooze):
		return End{Kind: EndSnoozed, After: snooze.span, Err: clean(snooze.reason)}
	case isPermanent(err), p.maxAttempts > 0 && i.Attempts >= p.maxAttempts:
		return p.dead(err.Error())
	}
	return End{Kind: EndRetry, After: p.delay(i.Attempts, jitter), Err: clean(err.Error())}
}

func (p policy) dead(text string) End {
	if p.halt {
		return End{Kind: EndHalted, Err: clean(text)}
	}
	return End{Kind: EndDead, Err: clean(text)}
}

// delay returns how long to wait after the attempt.
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
	return strings.ToValidUTF8(text[:min(len(text), MaxError)], "")
}

// orphans compares the claims of a node in the store with those that the process knows. A
// claim is unknown if the answer of the call that made it was lost, for example. The first
// result is all unknown claims, with the times when they were first seen. The second is the
// claims that have been unknown for at least span. Seen is the first result of the previous
// call.
func orphans(seen map[Held]time.Time, claims []Held, known func(ItemID) bool, now time.Time, span time.Duration) (map[Held]time.Time, []Held) {
	still, lost := map[Held]time.Time{}, []Held(nil)
	for _, c := range claims {
		c.Cancel = ""
		if known(c.ID) {
			continue
		}
		still[c] = now
		if first, ok := seen[c]; ok {
			still[c] = first
		}
		if now.Sub(still[c]) >= span {
			lost = append(lost, c)
		}
	}
	return still, lost
}
