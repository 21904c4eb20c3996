// Package adaptiverate runs calls to a server that may say "not before 500 ms from now": no
// item starts until that time has passed.
//
//	polite, err := adaptiverate.New(callAPI, core.Options{MaxConcurrency: 8})
//
// The time comes from an error of the work that has a method RetryAfter() time.Duration, or
// from a signal such as "rate-limit:500ms". For what is left of it, the coordinator holds
// a fact, such as "rate.limited.api", which defers its items. They wait in its queue, where Explain
// shows until when, and where they can be cancelled. Items that run go on. The newest time
// counts: a shorter one replaces a longer one, and "rate-limit:0ms" ends the wait.
//
// The item that failed is not run again; see package retry for that.
//
// A limit is one for a sink: all coordinators of this package that share the sink wait for
// it. Give APIs with separate limits separate sinks. What New returns is a
// [core.Coordinator].
package adaptiverate
