// Package bucket decides when tokens of a rate are there: the arithmetic of a token bucket, as
// plain data. It has no lock, no clock and no goroutine, calls nothing, and allocates nothing.
// The caller passes the time, and holds a lock if goroutines share the data.
//
//	m := bucket.Start(now, 10, 5) // 10 tokens a second, a burst of 5
//	var mark bucket.Mark          // a full bucket
//	if m.Take(&mark, now, 3) { ... }
//	at := m.Due(mark, 3, now)   // the time of the next three
//	m.Book(&mark, 3, now, at)   // later, but as of that time
//
// A [Meter] is a clock that counts tokens instead of nanoseconds. Its total is the number of
// tokens that have come in. A new rate makes the clock slower or faster, and changes nothing else.
// A pause stops the clock. A bucket is one number, its [Mark]: it has total-mark tokens. So many
// buckets can share one meter, and a full bucket needs no memory: it is the zero Mark.
//
// Tokens are counted in fixed point, with a precision of 2^-64 tokens. Nothing is rounded to
// whole nanoseconds: at 300 million tokens a second, that would be an error of 10 %.
//
// Times are in nanoseconds since a fixed moment. They may go back a little; the total of a
// meter does not.
//
// Use this package to build something that keeps to a rate. To limit calls, use module
// atoms/ratelimit.
package bucket
