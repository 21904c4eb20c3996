package statuspage

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

type graphFrame struct {
	Nodes   []graphNode `json:"nodes"`
	Edges   []graphEdge `json:"edges"`
	Cycles  [][]int     `json:"cycles"`  // by index of the node
	Seen    int         `json:"seen"`    // operations that were looked at
	Missing int         `json:"missing"` // and how many more there were
}

type graphNode struct {
	Kind        core.ReasonKind  `json:"kind"` // "operation", or what it waits for
	Coordinator string           `json:"coordinator,omitempty"`
	Operation   core.OperationID `json:"operation,omitempty"`
	Status      string           `json:"status,omitempty"`
	Name        string           `json:"name,omitempty"`
	Stuck       bool             `json:"stuck,omitempty"`
}

type graphEdge struct {
	From  int    `json:"from"`
	To    int    `json:"to"`
	Text  string `json:"text,omitempty"`
	Since string `json:"since,omitempty"`
}

// graph shows who waits for whom in all coordinators.
func (p *Page) graph(context.Context, effort) (any, error) {
	all := make([]core.Inspector, len(p.coordinators))
	for i, c := range p.coordinators {
		all[i] = c.is
	}
	var g inspect.WaitGraph
	if err := guarded(func() error { g = inspect.Waits(all...); return nil }); err != nil {
		return nil, err
	}
	shown := graphFrame{make([]graphNode, len(g.Nodes)), make([]graphEdge, len(g.Edges)), g.Cycles, g.Seen, g.Missing}
	for i, n := range g.Nodes {
		row := graphNode{n.Kind, p.locate(n.Operation, n.Coordinator), n.Operation, "", p.redacted(n.Name), n.Stuck}
		if n.Of >= 0 {
			row.Coordinator = p.coordinators[n.Of].id
		}
		if n.Kind == "" {
			row.Kind = "operation"
		}
		if n.Status != 0 {
			row.Status = n.Status.String()
		}
		shown.Nodes[i] = row
	}
	for i, e := range g.Edges {
		shown.Edges[i] = graphEdge{From: e.From, To: e.To, Since: stamp(e.Reason.Since)}
		if e.Reason.Kind != "" {
			shown.Edges[i].Text = p.words(e.Reason)
		}
	}
	return shown, nil
}

// words returns a reason as a text without durations, so that equal frames stay equal.
func (p *Page) words(r core.Reason) string {
	r.Key, r.What = p.redacted(r.Key), p.redacted(r.What)
	r.Signal.Name, r.Signal.Key = p.redacted(r.Signal.Name), p.redacted(r.Signal.Key)
	return cut(r.String())
}
