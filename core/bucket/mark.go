package bucket

// A Mark is a bucket of a [Meter]. The zero value is a full bucket. A Mark belongs to the meter
// that changed it.
//
// It is a number of tokens in fixed point: whole + part/2^64. Unlike a float64 it is not rounded,
// so taking tokens and giving them back changes nothing.
type Mark struct {
	whole int64
	part  uint64
}

// Less reports whether a bucket has more tokens than another one of the same meter.
func (a Mark) Less(b Mark) bool {
	return a.whole < b.whole || a.whole == b.whole && a.part < b.part
}

func (a Mark) max(b Mark) Mark {
	if a.Less(b) {
		return b
	}
	return a
}

// plus adds whole tokens.
func (a Mark) plus(n int64) Mark { return Mark{a.whole + n, a.part} }

// charged is plus, but never overflows, however often it is called.
func (a Mark) charged(n int64) Mark { return Mark{min(a.whole+n, highest), a.part} }

func (a Mark) minus(b Mark) Mark {
	whole := a.whole - b.whole
	if a.part < b.part {
		whole--
	}
	return Mark{whole, a.part - b.part}
}

func (a Mark) float() float64 { return float64(a.whole) + float64(a.part)*0x1p-64 }
