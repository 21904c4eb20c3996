package signals

import "context"

// need panics unless has is true. The message says what the caller needs.
func need(has bool, what string) {
	if !has {
		panic("signals: " + what)
	}
}

func needContext(ctx context.Context, caller string) {
	need(ctx != nil, caller+" needs a context, not nil: context.Background() never ends")
}
