package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals of a run. They are raised on [core.Options.Sink], with the name of the
// node as key. Each SignalStart is followed by one of SignalDone, SignalFailed
// and SignalCancelled, and that by the SignalStart of dependents.
const (
	// SignalStart is raised when the work of a node is about to start.
	SignalStart = "operation.start"
	// SignalDone is raised when a node has succeeded.
	SignalDone = "operation.done"
	// SignalFailed is raised when a node has failed; the payload is the error.
	SignalFailed = "operation.failed"
	// SignalSkipped is raised for a node that will not run because a node it
	// depends on has failed; the payload is the name of the one that failed.
	SignalSkipped = "operation.skipped"
	// SignalCancelled is raised when a node has ended because the run was
	// cancelled. Nodes that had not started yet raise nothing.
	SignalCancelled = "operation.cancelled"
)

// A Graph is a set of named nodes, each with an item to work on and the names of
// the nodes it depends on. Make one with [New]. It is safe for concurrent use and
// may be run many times, also at once: each run takes the nodes that have been
// added by then and is independent of the others.
type Graph[T any] struct {
	mu    sync.Mutex
	nodes []node[T] // only ever appended to
	index map[string]int
}

type node[T any] struct {
	name string
	item T
	deps []string
}

// New makes an empty graph.
func New[T any]() *Graph[T] { return &Graph[T]{index: make(map[string]int)} }

// Add adds a node that depends on the nodes named in deps, which need not have
// been added yet; naming one twice changes nothing. It returns an error, and
// leaves the graph as it is, if the name is empty or taken. A run that is under
// way does not notice.
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

// Run does work for the item of every node and returns when all that was started
// has ended. Nodes that may run start in the order in which they became so, at
// first that in which they were added.
//
// If a dependency is unknown, there is a cycle or the options are not valid,
// nothing runs, and the report is empty. Otherwise the report tells of every
// node, and the error joins the errors of the nodes that failed, in the order in
// which they occurred; of more than a hundred the first hundred and a count.
//
// When ctx ends before all is done, Run starts no more nodes, cancels what runs
// with the cause of ctx, and returns that cause joined with what else went wrong.
// With [core.Options.StopOnError] the first failure ends the run likewise, and is
// what Run returns.
//
// Run panics if work is nil.
func (g *Graph[T]) Run(ctx context.Context, work core.Work[T], opts core.Options) (Report, error) {
	if work == nil {
		panic("graph: Run needs work to do, not a nil function")
	}
	nodes, index := g.snapshot()
	p, err := newPlan(nodes, index)
	if err != nil {
		return Report{}, err
	}
	r, err := newRun(ctx, nodes, p, work, opts)
	if err != nil {
		return Report{}, err
	}
	defer r.close()
	r.loop()
	return Report{r.results, index}, r.err()
}

// snapshot returns the nodes there are now.
func (g *Graph[T]) snapshot() ([]node[T], map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clip(g.nodes), maps.Clone(g.index)
}
