package core

// parentKey is the key of the id of the operation that enqueues.
type parentKey struct{}
