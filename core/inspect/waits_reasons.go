package inspect

import (
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// explain adds the edges of the operation at i. An explanation also explains what the
// operation waits for, so not every operation must be asked.
func (l *looker) explain(i int) {
	n := l.Nodes[i]
	if l.explained[n.Operation] > 0 {
		return
	}
	x, _ := l.coordinators[n.Of].Explain(n.Operation)
	for _, r := range x.Reasons {
		from, ok := l.operations[r.Operation]
		if !ok || l.Nodes[from].Of < 0 || l.explained[r.Operation] > 0 && l.explained[r.Operation] != 1+i {
			continue
		}
		l.explained[r.Operation] = 1 + i
		if to := l.reason(l.Nodes[from].Of, r); to >= 0 {
			isOrder := r.Kind == core.ReasonPriority || r.Kind == core.ReasonOrder && r.Key == ""
			l.Edges = append(l.Edges, WaitEdge{from, to, r, isOrder})
		}
	}
}

// reason returns the node of what an operation of a coordinator waits for, or -1.
func (l *looker) reason(of int, r core.Reason) int {
	switch r.Kind {
	case core.ReasonLimit:
		return l.used(of, r, "", func(s core.Snapshot) bool { return s.Status == core.StatusRunning })
	case core.ReasonLane:
		return l.used(of, r, r.Lane, func(s core.Snapshot) bool { return s.Status == core.StatusRunning && s.Lane == r.Lane })
	case core.ReasonClass:
		return l.used(of, r, r.Class, func(s core.Snapshot) bool { return s.Status == core.StatusRunning && s.Class == r.Class })
	case core.ReasonKey:
		return l.used(of, r, r.Key, func(s core.Snapshot) bool { return s.Key == r.Key })
	case core.ReasonSuspended:
		r.Running = r.Ahead
		return l.used(of, r, "", func(core.Snapshot) bool { return true })
	case core.ReasonTrial:
		class := l.reason(of, core.Reason{Kind: core.ReasonClass, Class: r.Class})
		l.open[class] = true // more may run when the signal goes
		return l.signal(of, r)
	case core.ReasonRefused, core.ReasonDeferred:
		return l.signal(of, r)
	case core.ReasonPaused, core.ReasonRate, core.ReasonBody:
		i, _ := l.resource(r.Kind, of, r.Key+r.Class+r.What)
		l.open[i] = true
		return i
	case core.ReasonPriority, core.ReasonOrder:
		if first, ok := l.operations[r.Holder]; ok {
			return first
		}
	case core.ReasonNested:
		return l.nested(r)
	}
	return -1
}

// resource returns the node of a resource, and whether it is new.
func (l *looker) resource(kind core.ReasonKind, of int, name string) (i int, isNew bool) {
	n := WaitNode{Kind: kind, Of: of, Coordinator: l.coordinators[of].Name(), Name: name}
	i, ok := l.index[n]
	if !ok {
		i, l.index[n] = len(l.Nodes), len(l.Nodes)
		l.Nodes = append(l.Nodes, n)
	}
	return i, !ok
}

// used returns the node of a resource, with edges to the operations that use it. If not all
// of these are known, the resource is open.
func (l *looker) used(of int, r core.Reason, name string, uses func(core.Snapshot) bool) int {
	i, isNew := l.resource(r.Kind, of, name)
	if !isNew {
		return i
	}
	users := 0
	for _, s := range l.started[of] {
		if uses(s) {
			users++
			l.Edges = append(l.Edges, WaitEdge{From: i, To: l.operations[s.ID]})
		}
	}
	if users < r.Running {
		l.open[i] = true
	}
	return i
}

// signal returns the node of a signal. If an operation holds it, there is an edge to that
// operation.
func (l *looker) signal(of int, r core.Reason) int {
	i, isNew := l.resource(r.Kind, of, r.Signal.Name)
	holder, ok := l.operations[r.Signal.Operation]
	switch {
	case !ok || !r.Signal.Held || !r.Expires.IsZero():
		l.open[i] = true
	case isNew:
		l.Edges = append(l.Edges, WaitEdge{From: i, To: holder})
	}
	return i
}

// nested returns the operation that a body waits for, or the room that it waits for.
func (l *looker) nested(r core.Reason) int {
	if i, ok := l.operations[r.Holder]; ok {
		return i
	}
	named := func(c core.Inspector) bool { return c.Name() == r.Of }
	of := slices.IndexFunc(l.coordinators, named)
	switch {
	case r.Holder != 0:
		i := l.add(-1, r.Of, core.Snapshot{ID: r.Holder})
		l.open[i] = true
		return i
	case of < 0:
		return -1
	}
	i, isNew := l.resource(core.ReasonNested, of, r.Lane+r.Class)
	if slices.ContainsFunc(l.coordinators[of+1:], named) {
		l.open[i] = true // which of them is not known
	} else if isNew {
		for _, why := range l.full(of, r) {
			l.Edges = append(l.Edges, WaitEdge{From: i, To: l.reason(of, why)})
		}
	}
	return i
}

// full returns the limits that keep items of a coordinator from starting. There is no room
// for others meanwhile.
func (l *looker) full(of int, r core.Reason) (why []core.Reason) {
	s := l.coordinators[of].Stats()
	if s.Running >= s.Limit {
		why = append(why, core.Reason{Kind: core.ReasonLimit, Running: s.Running})
	}
	for _, lane := range s.Lanes {
		if lane.Name == r.Lane && lane.Limit > 0 && lane.Running >= lane.Limit {
			why = append(why, core.Reason{Kind: core.ReasonLane, Lane: lane.Name, Running: lane.Running})
		}
	}
	for _, class := range s.Classes {
		if class.Name == r.Class && class.Limit > 0 && class.Running >= class.Limit {
			why = append(why, core.Reason{Kind: core.ReasonClass, Class: class.Name, Running: class.Running})
		}
	}
	return why
}

// stuckOf reports which nodes do not end by themselves. An open node does. Other nodes end
// after all nodes to which their edges lead, or, if oneOf is set, after one of these.
func stuckOf(to [][]int, oneOf []bool, open map[int]bool) []bool {
	stuck := make([]bool, len(to))
	for i := range stuck {
		stuck[i] = !open[i] && len(to[i]) > 0
	}
	for changed := true; changed; {
		changed = false
		for i := len(to) - 1; i >= 0; i-- {
			waits := 0
			for _, next := range to[i] {
				if stuck[next] {
					waits++
				}
			}
			if stuck[i] && (waits == 0 || oneOf[i] && waits < len(to[i])) {
				stuck[i], changed = false, true
			}
		}
	}
	return stuck
}

// cyclesOf returns a shortest closed path of stuck nodes for each node that is on one and
// is not in an earlier path.
func cyclesOf(to [][]int, stuck []bool) (cycles [][]int) {
	known := make([]bool, len(to))
	for start := range to {
		if known[start] || !stuck[start] {
			continue
		}
		from, queue := map[int]int{}, []int{start}
		for i := 0; i < len(queue); i++ {
			for _, next := range to[queue[i]] {
				if _, seen := from[next]; !seen && stuck[next] {
					from[next] = queue[i]
					queue = append(queue, next)
				}
			}
		}
		before, ok := from[start]
		if !ok {
			continue
		}
		cycle := []int{start}
		for ; before != start; before = from[before] {
			cycle = append(cycle, before)
		}
		slices.Reverse(cycle[1:])
		for _, i := range cycle {
			known[i] = true
		}
		cycles = append(cycles, cycle)
	}
	return cycles
}
