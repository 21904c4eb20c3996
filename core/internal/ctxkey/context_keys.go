package ctxkey

// parentKey is the key of the id of the operation that enqueues.
type Parent struct{}
