package slidingcache

import (
	"sync/atomic"
	"time"
)

// never is later than any time, in nanoseconds since the cache was made.
const never = 1<<63 - 1

// later is the time that lies d after at, which is not negative.
func later(at, d int64) int64 { return at + min(d, never-at) }

// record is stored for a key. Most records have a value and no details.
type record[V any] struct {
	value   V
	details *details
}

// err returns the reason why there is no value, or nil.
func (r record[V]) err() error {
	if r.details == nil {
		return nil
	}
	return r.details.absence
}

// details are facts about a record that the store does not know: it stands for an absence; when
// it is due for a refresh; it has expired and is kept in case a load fails.
type details struct {
	absence error        // why there is no value, and then the other fields are not used; nil: there is a value
	latest  int64        // latest expiry; an access does not move it
	expires atomic.Int64 // the time of expiry; ^time after the record was found expired
	refresh atomic.Int64 // when the record becomes due for a refresh
}

// access extends the life of a record by d, unless the record has expired, and returns the time
// of expiry. A record that was found expired stays expired, even for a caller with an older
// time.
func (f *details) access(now, d int64) (end int64, alive bool) {
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
		to := max(at, min(later(now, d), f.latest))
		if to == at || f.expires.CompareAndSwap(at, to) {
			return to, true
		}
	}
}

// due reports whether the record is due for a refresh. It returns true to only one caller in
// each period d.
func (f *details) due(now, d int64) bool {
	at := f.refresh.Load()
	return at <= now && f.refresh.CompareAndSwap(at, later(now, d))
}

// times are the durations of [Options] as offsets. If one is not set, it is never; stale and
// negative are 0 then.
type times struct {
	sliding, absolute, refresh, stale, negative int64
}

// decides reports whether the details of a value have its expiry; otherwise the store has it.
func (s *times) decides() bool { return s.stale > 0 }

// needed reports whether values need details.
func (s *times) needed() bool { return s.decides() || s.refresh < never }

// detailsOf returns the details of a value that is stored now. life is what its load has
// returned: 0 means nothing, negative that the value never expires.
func (s *times) detailsOf(now int64, life time.Duration) *details {
	sliding, absolute := s.sliding, s.absolute
	switch {
	case life < 0:
		sliding, absolute = never, never
	case life > 0:
		sliding, absolute = int64(life), int64(life)
	}
	f := &details{latest: later(now, absolute)}
	f.expires.Store(never)
	if s.decides() {
		f.expires.Store(min(later(now, sliding), f.latest))
	}
	f.refresh.Store(later(now, s.refresh))
	return f
}

// status says how a record can be used.
type status uint8

const (
	nothing  status = iota // there is none, or it has expired
	fresh                  // a value
	absent                 // it is known that there is no value
	outdated               // an expired value, to be returned if a load fails
)

// check returns the status of a record of the store, and extends its life by d; 0 means no
// access.
func (s *times) check(f *details, now, d int64) status {
	switch {
	case f == nil:
		return fresh
	case f.absence != nil:
		return absent
	case !s.decides():
		return fresh
	}
	switch end, alive := f.access(now, d); {
	case alive:
		return fresh
	case now < later(end, s.stale):
		return outdated
	}
	return nothing
}

// forStore returns how long the store has to keep values: after an access, and in all.
func (s *times) forStore() (ttl, maxAge time.Duration) {
	return time.Duration(later(s.sliding, s.stale)), time.Duration(later(s.absolute, s.stale))
}
