package ratelimit

// amount is a number of tokens in fixed point: whole + part/2^64. It is exact where
// a float64 would round, so that what was taken and given back leaves no trace.
type amount struct {
	whole int64
	part  uint64
}

// lowest is less than any amount there can be.
var lowest = amount{whole: -1 << 62}

func (a amount) less(b amount) bool {
	return a.whole < b.whole || a.whole == b.whole && a.part < b.part
}

func (a amount) max(b amount) amount {
	if a.less(b) {
		return b
	}
	return a
}

// plus adds whole tokens.
func (a amount) plus(n int64) amount { return amount{a.whole + n, a.part} }

func (a amount) minus(b amount) amount {
	whole := a.whole - b.whole
	if a.part < b.part {
		whole--
	}
	return amount{whole, a.part - b.part}
}

func (a amount) float() float64 { return float64(a.whole) + float64(a.part)*0x1p-64 }
