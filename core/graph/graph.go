package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/check"
	"github.com/ephemeralgo/ephemeral/core/internal/runner"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of a run. They are raised on [core.Options.Sink], with the name of the node as
// key. After each SignalStarted comes one of SignalCompleted, [Failures] and
// SignalCancelled. The SignalStarted of dependents comes after that.
const (
	// SignalStarted is raised when the work of a node is about to start.
	SignalStarted = "node.started"
	// SignalCompleted is raised when a node has succeeded.
	SignalCompleted = "node.completed"
	// SignalCancelled is raised when a node has ended because the run was
	// cancelled. It is not raised for nodes that had not started.
	SignalCancelled = "node.cancelled"
)

var (
	// Failures are raised when a node has failed; the payload is the error.
	Failures = signals.NewKind[error]("node.failed")
	// Skips are raised for a node that does not run because one of its dependencies has failed;
	// the payload is the name of the failed node.
	Skips = signals.NewKind[string]("node.skipped")
)

// A Graph is a set of named nodes, each with an item and the names of its dependencies.
// Make one with [New]. It is safe for concurrent use and may be run many times, even at
// the same time. The runs are independent. A run takes the nodes that were added before
// it.
type Graph[T any] struct {
	mu    sync.Mutex
	nodes []node[T] // append only
	index map[string]int
}

type node[T any] struct {
	name string
	item T
	deps []string
}

// New makes an empty graph.
func New[T any]() *Graph[T] { return &Graph[T]{index: make(map[string]int)} }

// Add adds a node that depends on the nodes named in deps. These may be added later; a
// name may come twice. If the name is empty or taken, it returns an error and does not
// change the graph. It does not affect a run that has started.
func (g *Graph[T]) Add(name string, item T, deps ...string) error {
	if name == "" {
		return errors.New("graph: a node needs a name")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, taken := g.index[name]; taken {
		return fmt.Errorf("graph: node %q has been added already", name)
	}
	g.index[name] = len(g.nodes)
	g.nodes = append(g.nodes, node[T]{name, item, slices.Clone(deps)})
	return nil
}

// Run does work for the item of every node and returns when every started node has ended.
// Nodes start in the order in which they became ready; nodes without dependencies start in
// the order in which they were added. A suspended node, see [core.Operation.Suspend],
// still counts towards MaxConcurrency: no other node starts in its place.
//
// If a dependency is unknown, there is a cycle or the options are not valid, nothing runs
// and the report is empty. Otherwise the report has a result for every node. The error
// joins the errors of the nodes that failed, in the order in which they ended; if there
// are more than a hundred, it has the first hundred and the number of the others.
//
// When ctx ends before all nodes have ended, Run starts no more nodes, cancels running
// ones with the cause of ctx, and returns that cause joined with the other errors. With
// [core.Options.StopOnError] the first failure ends the run in the same way: it is the
// cause for running nodes, and the error of Run.
//
// Run panics if work is nil.
func (g *Graph[T]) Run(ctx context.Context, work core.Work[T], opts core.Options) (Report, error) {
	check.Panic(work == nil, "graph: Run needs work to do, not a nil function")
	nodes, index := g.snapshot()
	s, err := newSchedule(nodes, index)
	if err != nil {
		return Report{}, err
	}
	r := &run[T]{nodes: nodes, work: work, results: make([]Result, len(nodes)), schedule: s}
	if r.runner, err = runner.New(ctx, "graph", r.body, opts); err != nil {
		return Report{}, err
	}
	defer r.runner.Close()
	err = r.do()
	return Report{r.results, index}, err
}

// snapshot returns the present nodes.
func (g *Graph[T]) snapshot() ([]node[T], map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clip(g.nodes), maps.Clone(g.index)
}
