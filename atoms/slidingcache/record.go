package slidingcache

import (
	"sync/atomic"
	"time"
)

// record is what is stored for a key. Most are a value of which the store knows all
// there is to know; such a record has no fate.
type record[V any] struct {
	value V
	fate  *fate
}

// fate is what the store cannot know of a record: that it stands for an absence,
// that it is to be refreshed, or that it has expired but is kept for the case that
// a load fails.
type fate struct {
	absence error        // not nil: there is no value, and why
	latest  int64        // no access lets it expire later
	expires atomic.Int64 // when that is; ^when once found expired
	refresh atomic.Int64 // from when on it is to be refreshed
}

// access prolongs the life of a record by span, unless it is over, and returns when
// it ends, or has ended. Once it was found to be over, it stays so, also for those
// who are late.
func (f *fate) access(now, span int64) (end int64, alive bool) {
	for {
		at := f.expires.Load()
		switch {
		case at < 0:
			return ^at, false
		case at <= now:
			if f.expires.CompareAndSwap(at, ^at) {
				return at, false
			}
			continue
		}
		to := max(at, min(later(now, span), f.latest))
		if to == at || f.expires.CompareAndSwap(at, to) {
			return to, true
		}
	}
}

// due reports whether the record is to be refreshed, to one of those who ask; the
// others, and all when that has failed, are told the next time after span.
func (f *fate) due(now, span int64) bool {
	at := f.refresh.Load()
	return at <= now && f.refresh.CompareAndSwap(at, later(now, span))
}

// spans are the times of [Options] as offsets; never stands for none, except that
// stale and negative are 0 then.
type spans struct {
	sliding, absolute, refresh, stale, negative int64
}

// decides reports whether the fate of a value says when it expires; otherwise the
// store knows, which has one maximum age for values and for absences.
func (s *spans) decides() bool { return s.stale > 0 || s.negative > s.absolute }

// rich reports whether values have a fate.
func (s *spans) rich() bool { return s.decides() || s.refresh < never }

// fateOf is the fate of a value that is stored now, nil if it needs none.
func (s *spans) fateOf(now int64) *fate {
	if !s.rich() {
		return nil
	}
	f := &fate{latest: later(now, s.absolute)}
	f.expires.Store(never)
	if s.decides() {
		f.expires.Store(min(later(now, s.sliding), f.latest))
	}
	f.refresh.Store(later(now, s.refresh))
	return f
}

// absence is the fate of a record that says that there is no value.
func (s *spans) absence(now int64, why error) *fate {
	f := &fate{absence: why, latest: later(now, s.negative)}
	f.expires.Store(f.latest)
	f.refresh.Store(never)
	return f
}

// verdict is what a record is good for.
type verdict uint8

const (
	nothing  verdict = iota // there is none, or it is over
	fresh                   // a value
	absent                  // it is known that there is none
	outdated                // a value, if there should be no other
)

// judge says what a record is good for now, and accesses it.
func (s *spans) judge(f *fate, now int64) verdict {
	switch {
	case f == nil:
		return fresh
	case f.absence != nil:
		if _, alive := f.access(now, 0); alive {
			return absent
		}
		return nothing
	case !s.decides():
		return fresh
	}
	switch end, alive := f.access(now, s.sliding); {
	case alive:
		return fresh
	case now < later(end, s.stale):
		return outdated
	}
	return nothing
}

// forStore returns for how long the store has to keep values, after an access and
// at most.
func (s *spans) forStore() (ttl, maxAge time.Duration) {
	span := func(n int64) time.Duration {
		if n == never {
			return -1
		}
		return time.Duration(n)
	}
	return span(later(s.sliding, s.stale)), span(max(later(s.absolute, s.stale), s.negative))
}
