package retry

var (
	ErrMaxElapsed = errMaxElapsed
	ErrMaxDelay   = errMaxDelay
	ErrStopped    = errStopped
)

func (b *Budget) Tokens() float64 { return b.tokens() }
