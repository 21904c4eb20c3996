package core

import "context"

// demand panics unless has is true. The message says what the caller needs.
func demand(has bool, what string) {
	if !has {
		panic("core: " + what)
	}
}

func demandContext(ctx context.Context, caller string) {
	demand(ctx != nil, caller+" needs a context, not nil: context.Background() never ends")
}
