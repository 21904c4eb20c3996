package mesh

import (
	"cmp"
	"slices"
	"time"
)

// A Node is another node, as far as this one has heard it.
type Node struct {
	Name string    `json:"name"`
	Seen time.Time `json:"seen"` // when its newest message was sent, by the clock here
	Held int       `json:"held"` // how many signals it holds that Accept lets in
	Losses
}

// Nodes returns the other nodes that have been heard within Lease, sorted by name. It is what
// this node has heard: other nodes may have heard others.
func (m *Mesh) Nodes() (nodes []Node) {
	m.do(func() {
		m.table.expire(m.now())
		for _, o := range m.table.counted {
			nodes = append(nodes, Node{o.name, m.start.Add(o.heard), o.stand, o.Losses})
		}
	})
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

// Stats are the counters of a mesh. For each node, what has arrived is counted:
//
//	Raised + Missed + Late + Over + refused = what it has shared since it was heard first
//
// The numbers are exact when a message of the node arrives, at the latest with its next beat.
// What a node sent before it died, in a cut, is not known.
type Stats struct {
	Held    int    `json:"held"`    // signals of this node that are held on the others
	Queued  int    `json:"queued"`  // raised signals that wait to be sent
	Sent    uint64 `json:"sent"`    // raised signals of this node
	Unsent  uint64 `json:"unsent"`  // signals of this node that did not fit, beyond MaxQueued, or refused by the connection, as its beats
	Raised  uint64 `json:"raised"`  // signals of other nodes that were raised here
	Refused uint64 `json:"refused"` // messages and signals that were not accepted
	Losses         // signals of other nodes
}

// Name is [Options.Name], or its default.
func (m *Mesh) Name() string { return m.opts.Name }

// Stats returns the counters. It costs a lock.
func (m *Mesh) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, t := &m.own, m.table
	return Stats{len(o.holds), len(o.facts), o.sent, o.unsent, t.raised, t.refused, t.Losses}
}
