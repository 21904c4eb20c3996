// Package ctxkey has the keys of context values that packages of core share.
package ctxkey

// Parent is the key of the id of the operation that enqueues.
type Parent struct{}
