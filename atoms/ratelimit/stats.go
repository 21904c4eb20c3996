package ratelimit

// Counts are the counters of all kinds of limiters. Each request is in one of four counters:
//
//	requests = Allowed + Denied + Queued + Cancelled
type Counts struct {
	Allowed   uint64 `json:"allowed"`   // requests that got their tokens
	Denied    uint64 `json:"denied"`    // requests that were refused at once
	Queued    int    `json:"queued"`    // requests in the queue, with reservations
	Cancelled uint64 `json:"cancelled"` // requests that gave up, were ended by Close, or gave their tokens back
}

func (c Counts) plus(d Counts) Counts {
	return Counts{c.Allowed + d.Allowed, c.Denied + d.Denied, c.Queued + d.Queued, c.Cancelled + d.Cancelled}
}

// Stats are the counters and the state of a [Limiter] or of a [Group].
//
//	requests = Allowed + Denied + Queued + Cancelled
type Stats struct {
	Counts
	Limits []LimitState `json:"limits"` // one for a Limiter
}

// LimitState is the state of a [Limiter], or of a limit of a [Group]. Tokens is at most Burst.
type LimitState struct {
	Name   string  `json:"name"`
	Tokens float64 `json:"tokens"` // tokens in the bucket; see [Limiter.Tokens]
	Rate   float64 `json:"rate"`   // tokens per second, or [Unlimited]
	Burst  int     `json:"burst"`
}

// KeyedStats are the counters and the state of a [Keyed].
//
//	requests = Allowed + Denied + Queued + Cancelled
type KeyedStats struct {
	Counts
	Keys      int    `json:"keys"`      // keys in memory
	Forgotten uint64 `json:"forgotten"` // keys removed because there were too many
}

// state returns the state of a limit and of its bucket.
func (b *tokenBucket) state(name string, now int64) LimitState {
	return LimitState{name, b.meter.Level(b.mark, now), b.meter.Rate(), int(b.meter.Burst())}
}
