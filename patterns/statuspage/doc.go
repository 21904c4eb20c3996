// Package statuspage shows what a program is doing: one page, like net/http/pprof, but for
// work.
//
//	p, err := statuspage.New(statuspage.Options{
//		Sinks:        map[string]*core.Sink{"main": sink},
//		Coordinators: []core.Inspector{uploads, orders},
//	})
//	if err != nil {
//		return err
//	}
//	mux.Handle("/debug/ephemeral/", http.StripPrefix("/debug/ephemeral", p))
//	server.RegisterOnShutdown(func() { p.Close() })
//
// A [Page] is an http.Handler. It shows coordinators, their operations and why those wait,
// who waits for whom, how long operations wait and run, the signals of sinks, queues in
// stores, and schedules. It needs no build step and loads nothing from elsewhere. Scripts can
// read the same data as JSON under api/. API.md in the directory of this module lists the
// fields.
//
// Caches and rate limiters are not on the page, because they are no [core.Inspector]. A
// circuit breaker has no row either. While it is open, its held signal is among the
// signals of its sink.
//
// # Who sees it
//
// [Options.View] decides. If it is nil, the page is read-only, and accepts only requests from
// a loopback address. A proxy on the same machine makes everybody a loopback peer: there, set
// a View. [Token] makes a View for people who know a secret. [Loopback] is the default.
//
// A second rule holds whatever View is: if the client or the server is on a loopback address
// (127.0.0.1 or ::1), the Host header must be a known name. That is localhost, an IP address,
// or one of [Options.Hosts]. Otherwise a foreign web site could let its own name resolve to
// 127.0.0.1, and read the page in the browser of a developer (DNS rebinding).
//
// Of values and payloads, the page shows only the types, and of items as well, unless
// [Options.Show] makes a text of them. [Options.Redact] can change these texts, keys, error
// texts and signal names before they are shown. The page never treats a text as markup.
//
// # Who changes something
//
// [Options.Allow] decides. If it is nil, the page is read-only. If it is set, View must be
// set, too. A request for a change is an [Action]. If it was allowed, [SignalActed] is raised.
// If Allow refused it, [SignalRefused] is raised, at most once a second. Allow is not asked
// about unreadable requests, and about requests that a foreign site made a browser send. Such
// requests raise no signal, and neither does any request to a read-only page: [Page.Stats]
// counts them.
//
// The page docs/statuspage-security.md of the repository has the threat model, and
// configurations for nginx and Caddy.
//
// # What it costs
//
// New makes the coordinators of core count how long their operations wait and run: see
// core.Control.Times. From then on, also after Close, each operation costs a few nanoseconds
// more, and each coordinator keeps 80 kB, or 80 kB for each of its lanes and classes. Beside
// that, a page costs nothing while nobody looks, and has no goroutine.
//
// A stream gets a frame (a message with all that is shown) when something has changed, at
// most four times a second. Clients with equal queries share the frames. A frame of 50 rows
// takes less than 250 microseconds of processor time, even with 50,000 pending operations. If
// frames are costly, they come less often, down to once a second. A frame reads signals from
// the window of the sink, so raising a signal costs nothing more. If there are too many new
// signals for a frame, it skips some and counts them.
//
// A query that must search, for example for a key among many operations, costs as much as
// the method Operations of a coordinator. A search in all coordinators, and the groups of
// errors, look at 50,000 operations of each. The views of waits and of time come once a second
// at most. The view of waits costs as much as inspect.Waits.
package statuspage
