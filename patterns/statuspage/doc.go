// Package statuspage shows what a program is doing: one page, like net/http/pprof, but for
// work.
//
//	p, err := statuspage.New(statuspage.Options{
//		Sinks:        map[string]*signals.Sink{"main": sink},
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
// stores, what is paused there and why, the steps of flows, and schedules. It needs no build step
// and loads nothing from elsewhere. Scripts can read the same data as JSON under api/. API.md in the directory of this module lists the
// fields.
//
// The page does not show caches and rate limiters, because they are no [core.Inspector]. A
// circuit breaker has no row either. While it is open, it holds a signal, which is among the
// signals of its sink.
//
// # Who sees it
//
// [Options.View] decides. If it is nil, the page is read-only, and accepts only requests from
// a loopback address. Behind a proxy on the same machine, every request comes from such an
// address: there, set a View. [Token] makes a View for people who know a secret. [Loopback] is the default.
//
// A second rule holds whatever View is: if the client or the server is on a loopback address
// (127.0.0.1 or ::1), the Host header must be a known name. That is localhost, an IP address,
// or one of [Options.Hosts]. Without this rule, a foreign web site could let its own name mean
// 127.0.0.1, and read the page in the browser of a developer (DNS rebinding).
//
// The page shows only the types of values and payloads. It shows only the types of items as
// well, unless [Options.Show] makes texts of them. [Options.Redact] can change these texts, keys,
// error texts, signal names and names of steps before they are shown. The page never treats a text as markup.
//
// # Who changes something
//
// [Options.Allow] decides. If it is nil, the page is read-only. If it is set, View must be
// set, too. A request for a change is an [Action]. If Allow permits it, [SignalActed] is raised.
// If Allow refuses it, [SignalRefused] is raised, at most once a second. The page does not ask
// Allow about requests that it cannot read, and about requests that a browser sends for a foreign
// site. These raise no signal, and requests to a read-only page raise none either. [Page.Stats]
// counts them all.
//
// The page docs/statuspage-security.md of the repository has the threat model, and
// configurations for nginx and Caddy.
//
// # What it costs
//
// New makes the coordinators of core count how long their operations wait and run: see
// core.Control.Times. From then on, also after Close, each operation costs a few nanoseconds
// more. Each coordinator keeps up to 80 kB, or that for each of its lanes and classes, and
// [Options.MaxTimes] limits how many do. While nobody looks, a page costs nothing else, and has
// no goroutine.
//
// When something has changed, a stream gets a frame, which is a message with all that is shown. It
// gets at most four frames a second. Clients with equal queries share the frames. A frame of 50 rows
// takes less than 250 microseconds of processor time, even with 50,000 pending operations. If
// frames are costly, they come less often, down to once a second. A frame reads signals from
// the window of the sink, so raising a signal costs nothing more. If there are too many new
// signals for a frame, it skips some and counts them.
//
// The overview has about 400 bytes for each coordinator: with 10,000, a frame is 4 MB.
// A query that must search, for example for a key among many operations, costs as much as
// the method Operations of a coordinator. A search in all coordinators, and the groups of
// errors, look at 50,000 operations of each. The views of waits and of time come once a second
// at most. The view of waits costs as much as inspect.Waits.
package statuspage
