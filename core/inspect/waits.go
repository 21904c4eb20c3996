package inspect

import (
	"cmp"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// maxWaits is how many operations [Waits] looks at.
const maxWaits = 500

// A WaitGraph says who waits for whom. An edge leads from what waits to what it waits for:
// from an operation to a resource, from a resource to the operations that use it, or from
// an operation to an operation.
type WaitGraph struct {
	Nodes []WaitNode `json:"nodes"`
	Edges []WaitEdge `json:"edges"`
	// Cycles are closed paths of nodes, by their index in Nodes. All their nodes are stuck.
	// Each node that waits for itself in this way is in at least one of the paths.
	Cycles  [][]int `json:"cycles"`
	Seen    int     `json:"seen"`    // operations that were looked at
	Missing int     `json:"missing"` // pending, running and suspended operations that were not
}

// A WaitNode is an operation, or a resource for which operations wait.
type WaitNode struct {
	// Kind says what operations wait for, as in a [core.Reason]: for example core.ReasonKey
	// is a key, core.ReasonDeferred a signal, and core.ReasonNested room in a queue. "" is an
	// operation.
	Kind        core.ReasonKind  `json:"kind,omitempty"`
	Of          int              `json:"of"` // index of the coordinator; -1: it is another one, or the operation was not looked at
	Coordinator string           `json:"coordinator"`
	Operation   core.OperationID `json:"operation,omitempty"` // if Kind is ""
	Status      core.Status      `json:"status,omitempty"`    // likewise; 0: not known
	// Name is that of the lane, the class, the key or the signal, or what a body waits for.
	//ephemeral:none
	Name string `json:"name,omitempty"`
	// Stuck means that the node waits for a cycle, or is in one. It does not end by itself:
	// a context must end, or somebody must cancel an operation or raise a limit.
	Stuck bool `json:"stuck,omitempty"`
}

// A WaitEdge says that the node From waits for the node To.
type WaitEdge struct {
	From   int         `json:"from"`
	To     int         `json:"to"`
	Reason core.Reason `json:"reason,omitzero"` // zero if From is a resource
	// Order means that To only goes first: From does not need its end. Reason.Ahead says how many go first. There is an
	// edge to one of them.
	Order bool `json:"order,omitempty"`
}

// Waits returns the graph of everything that waits in these coordinators. It looks at
// 500 operations at most, and each coordinator has an equal share. It does not need
// all of it, others get the rest. Operations that have started come before pending ones,
// and old ones before new ones. What an operation waits for comes from Explain.
//
// If others go first, there is an edge to the first of them. Within a key this is a wait like any
// other, because the order of a key always holds: a cycle may go over the edge. Without a key, and
// for a higher lane, it is only the order, and the field Order says so. No cycle goes over such an
// edge, because the order alone keeps nothing waiting for ever. If the first one can start, it
// starts. If it cannot, the one behind it waits for the same, or starts before it.
//
// A body that waits with its context for its own coordinator, or in Suspend, gives its slot back.
// Then no edge leads to it because of this slot, unless MaxSuspended is reached.
//
// The graph is not a state of one instant: each operation is asked after the other, and no
// lock is held meanwhile. So if there is a cycle, Waits looks again, and returns what is
// stuck both times. Something is stuck only if there is no way out: a resource is free as
// soon as one of its users ends, so all its users must be stuck. If not all its users were
// looked at, or some are of another coordinator, it is not stuck.
//
// It costs as much as two calls of Operations for each coordinator with work, and a call of
// Explain for each operation, and twice that if there is a cycle.
func Waits(coordinators ...core.Inspector) WaitGraph {
	g := look(coordinators)
	if len(g.Cycles) == 0 {
		return g
	}
	was := map[core.OperationID]bool{}
	for _, n := range g.Nodes {
		was[n.Operation] = n.Stuck || n.Kind != ""
	}
	g = look(coordinators)
	g.Cycles = slices.DeleteFunc(g.Cycles, func(cycle []int) bool {
		return slices.ContainsFunc(cycle, func(i int) bool { return !was[g.Nodes[i].Operation] })
	})
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.Stuck = n.Stuck && was[n.Operation] && len(g.Cycles) > 0
	}
	return g
}

// A looker makes a graph.
type looker struct {
	WaitGraph
	coordinators []core.Inspector
	index        map[WaitNode]int // of resources
	operations   map[core.OperationID]int
	started      [][]core.Snapshot        // by coordinator: its operations that have started
	explained    map[core.OperationID]int // by which explanation: 1 and the index of its operation
	open         map[int]bool             // nodes that do not wait for others
}

// look is Waits without a second look.
func look(coordinators []core.Inspector) WaitGraph {
	l := &looker{
		coordinators: coordinators, started: make([][]core.Snapshot, len(coordinators)), index: map[WaitNode]int{}, open: map[int]bool{},
		operations: map[core.OperationID]int{}, explained: map[core.OperationID]int{},
	}
	l.Nodes, l.Edges, l.Cycles = []WaitNode{}, []WaitEdge{}, [][]int{}
	l.find()
	for i := range l.Seen {
		l.explain(i)
	}
	to, oneOf := make([][]int, len(l.Nodes)), make([]bool, len(l.Nodes))
	for i, n := range l.Nodes {
		oneOf[i] = n.Kind != "" && n.Kind != core.ReasonNested
	}
	for _, e := range l.Edges {
		if !e.Order {
			to[e.From] = append(to[e.From], e.To)
		}
	}
	stuck := stuckOf(to, oneOf, l.open)
	for i := range l.Nodes {
		l.Nodes[i].Stuck = stuck[i]
	}
	l.Cycles = append(l.Cycles, cyclesOf(to, stuck)...)
	return l.WaitGraph
}

// find adds the operations. The coordinators with the fewest come first, so that others get
// what these do not need.
func (l *looker) find() {
	alive, order := make([]int, len(l.coordinators)), make([]int, len(l.coordinators))
	for i, c := range l.coordinators {
		s := c.Stats()
		alive[i], order[i] = s.Pending+s.Running+s.Suspended, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(alive[a], alive[b]) })
	for n, of := range order {
		left := min(alive[of], (maxWaits-l.Seen)/(len(order)-n))
		for _, status := range []core.Status{core.StatusRunning | core.StatusSuspended, core.StatusPending} {
			if left == 0 {
				break
			}
			for s := range l.coordinators[of].Operations(core.OperationQuery{Status: status, Limit: left}) {
				if _, ok := l.operations[s.ID]; !ok { // it has not just started, and the coordinator was given once
					l.add(of, l.coordinators[of].Name(), s)
					l.Seen, left = l.Seen+1, left-1
				}
			}
		}
		l.Missing += alive[of]
	}
	l.Missing = max(0, l.Missing-l.Seen)
}

func (l *looker) add(of int, name string, s core.Snapshot) int {
	i := len(l.Nodes)
	l.Nodes = append(l.Nodes, WaitNode{Of: of, Coordinator: name, Operation: s.ID, Status: s.Status})
	l.operations[s.ID] = i
	if of >= 0 && s.Status&(core.StatusRunning|core.StatusSuspended) != 0 {
		l.started[of] = append(l.started[of], s)
	}
	return i
}
