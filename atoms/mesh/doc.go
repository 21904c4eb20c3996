// Package mesh shares signals between processes: what one process raises or holds on its sink
// is raised and held on the sinks of all others.
//
//	m, err := mesh.Join(ctx, conn, sink, mesh.Options{
//		Cluster: "shop",
//		Share:   "payment.*, gateway.*, update.*", // what leaves this process
//	})
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//
// Each process is a node. Monitors, gates, classes and breakers stand on the local sink and know
// nothing of it, so they work for the whole cluster. [signals.Signal].Node says where a signal comes
// from.
//
// NATS carries the messages, without storage. Nothing is elected, agreed on or replicated: a node
// sends what it shares, and the others remember what they have heard.
//
// # Raised signals
//
// A raised signal is raised on each node at most once, and in the order of its node. There is no
// order between signals of two nodes, nor between raised and held ones. Signals have numbers, so what
// does not arrive is counted, in [Stats] and [Node]: when the next message of its node arrives,
// at the latest with a beat. A signal older than MaxLate is counted and not raised. Its age needs
// no clocks that agree: it is compared with the fastest message of its node. Because clocks drift,
// an old message counts as slower by 1 ms for each second since then. For a node that is heard for the first time, age counts from its first message.
//
// # Held signals
//
// A held signal stands on all nodes until it is released, or until its node has been silent for
// Lease, by the clock of the receiver. Then it ends, on each node by itself, also in a network
// that is cut. When the node is heard again, its signals stand again with its next beat. A node
// can hold 10,000 signals. While a handler of held signals does not return, 100,000 changes wait
// for it; what comes beyond begins later.
//
// Right after Hold, gates on other nodes may still be open for a moment: [Mesh.Flush] says when
// they are closed. It is no lock: two nodes can hold the same at once, and a node that is silent
// for Lease loses what it holds without being asked.
//
// # Loops
//
// Imported signals are not sent on. A handler that answers a signal of another node by a shared
// signal must name the cause, with [signals.Sink.Because]: causes travel and count for
// [signals.Propagation], so a loop over nodes ends.
//
// # Trust
//
// Who may publish on the subjects of a cluster can take the name of any node, and raise and hold
// what Accept allows. Names are bounded to 256 bytes, messages to 64 kB, and signals to MaxRate; what
// is refused is counted. A message is not larger than max_payload of the server either; a signal that does not
// fit alone is not sent, see [Unsent]. All servers that a connection may find should have the same
// max_payload: if messages wait for a server that permits less, nats.go closes the connection for good. Authentication and encryption are those of NATS. The version of the protocol is in
// the subjects; nodes of two versions do not hear each other.
package mesh
