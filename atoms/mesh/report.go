package mesh

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Node is another node, as far as this one has heard it.
type Node struct {
	Name   string    `json:"name"`
	Seen   time.Time `json:"seen"`   // when its newest message was sent, by the clock here
	Held   int       `json:"held"`   // how many signals it holds here
	Missed uint64    `json:"missed"` // its signals that did not arrive
	Late   uint64    `json:"late"`   // its signals that were older than MaxLate
	Over   uint64    `json:"over"`   // its signals that came faster than MaxRate
}

// Nodes returns the other nodes that have been heard within Lease, sorted by name. It is what
// this node has heard: other nodes may have heard others.
func (m *Mesh) Nodes() []Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var nodes []Node
	for _, o := range m.table.counted {
		if o.heard+m.table.lease <= now {
			continue // the alarm is about to ring
		}
		nodes = append(nodes, Node{o.name, m.start.Add(time.Duration(o.heard)), len(o.holds), o.missed, o.late, o.over})
	}
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
	Nodes   int    `json:"nodes"`   // other nodes heard within Lease
	Held    int    `json:"held"`    // signals of this node that are held on the others
	Queued  int    `json:"queued"`  // raised signals that wait to be sent
	Sent    uint64 `json:"sent"`    // raised signals of this node
	Unsent  uint64 `json:"unsent"`  // signals of this node that did not fit, or beyond MaxQueued
	Raised  uint64 `json:"raised"`  // signals of other nodes that were raised here
	Missed  uint64 `json:"missed"`  // signals of other nodes that did not arrive
	Late    uint64 `json:"late"`    // signals of other nodes that were older than MaxLate
	Over    uint64 `json:"over"`    // signals of other nodes that came faster than MaxRate
	Refused uint64 `json:"refused"` // messages and signals that were not accepted
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// Stats returns the counters. It costs a lock.
func (m *Mesh) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, t := &m.own, m.table
	s := Stats{
		Nodes: t.alive(), Held: len(o.holds), Queued: len(o.queue), Sent: o.sent, Unsent: o.unsent,
		Raised: t.received, Missed: t.forgotten.missed, Late: t.forgotten.late, Over: t.forgotten.over, Refused: t.refused,
	}
	for _, n := range t.origins {
		s.Missed += n.missed
		s.Late += n.late
		s.Over += n.over
	}
	return s
}
