// Package adaptiverate runs calls to a server that may say "wait for 500 ms": until that time
// has passed, no item starts.
//
//	polite, err := adaptiverate.New(callAPI, core.Options{MaxConcurrency: 8})
//
// The time comes from an error of the work that has a method RetryAfter() time.Duration, or
// from a signal such as "rate-limit:500ms". Until the time has passed, the coordinator holds
// a signal such as "rate.limited.api", which defers its items. They wait in the queue:
// Explain shows until when, and they can be cancelled. Running items go on. The newest time
// counts: a shorter time replaces a longer one, and "rate-limit:0ms" ends the wait.
//
// An item that fails is not run again. For that, use package retry.
//
// All coordinators of this package that share a sink wait for the same limit. If servers have
// different limits, give each server its own sink.
package adaptiverate
