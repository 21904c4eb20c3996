package ratelimit

// Stats are the counters of a [Limiter]. Every request that was ever made is in
// exactly one of the first four.
type Stats struct {
	Allowed   uint64 `json:"allowed"`   // have got what they asked for
	Denied    uint64 `json:"denied"`    // were refused when they came
	Waiting   int    `json:"waiting"`   // stand in line, reservations too
	Cancelled uint64 `json:"cancelled"` // have given it back, or gave up, be it because of Close

	Delayed uint64  `json:"delayed"` // have got it later than they asked, whatever became of it
	Tokens  float64 `json:"tokens"`  // in the bucket; negative: owed
	Rate    float64 `json:"rate"`    // tokens per second; [Unlimited] if it is
	Burst   int     `json:"burst"`
	Limited bool    `json:"limited"` // [SignalLimited] stands
}

// stats returns what is common to all. Locked.
func (s *shell) stats() Stats {
	return Stats{
		Allowed:   s.counts.allowed,
		Denied:    s.counts.denied,
		Waiting:   s.room.line.length,
		Cancelled: s.counts.cancelled,
		Delayed:   s.counts.delayed,
		Limited:   s.condition.on,
	}
}
