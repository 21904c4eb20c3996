// Package statuspage shows what a program is doing: one page, like that of net/http/pprof,
// for work.
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
// the signals of sinks, queues in stores, and schedules. It needs no build step and loads
// nothing from elsewhere. Scripts read the same as JSON under api/; API.md in the directory
// of this module lists the fields.
//
// # Who sees it
//
// Without [Options.View], only requests from loopback addresses, and none that a proxy has
// passed on. A request to a loopback address must name localhost, an IP address, or one of
// [Options.Hosts] as its host, with every View. Otherwise a foreign web site could read the
// page in the browser of a developer, through a name that it lets resolve to 127.0.0.1.
//
// Items, values and payloads are shown by their types only. [Options.Redact] sees keys, error
// texts and signal names before anybody else does. All texts are data to the page, never
// markup.
//
// # Who changes something
//
// Nobody without [Options.Allow]: the page is read-only. With it, a request is an [Action],
// and each one that was allowed or not is raised as [SignalActed] or [SignalRefused]. A
// browser that asks for a foreign site is refused before Allow is asked. Requests that View or
// the rule for hosts refuses, and requests that are no actions, raise nothing: so strangers
// cannot fill the sink.
//
// # What it costs
//
// Nothing while nobody looks. A stream gets a frame when something has changed, at most four
// times a second. Clients that look at the same share the frames. A frame of 50 rows takes less than
// 250 microseconds of processor time, also with 50,000 pending operations; if one takes
// longer, the next comes later. Signals are read from the window once a frame, so the program
// pays nothing for raising them; those that are too many to look at are counted as skipped.
//
// Queries that must search, such as those for a key among many operations, cost what
// core's Operations costs.
package statuspage
