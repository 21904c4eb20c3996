package statuspage

import (
	"cmp"
	"context"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

type graphEdge struct {
	inspect.WaitEdge        // without its reason
	Text             string `json:"text,omitempty"`
	Since            string `json:"since,omitempty"`
}

// graph shows who waits for whom in all coordinators.
func (p *Page) graph(context.Context, effort) (any, error) {
	all := make([]core.Inspector, len(p.coordinators))
	for i, c := range p.coordinators {
		all[i] = c.is
	}
	g := inspect.Waits(all...)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.Kind, n.Name = cmp.Or(n.Kind, "operation"), p.redacted(n.Name)
		if n.Of >= 0 {
			n.Coordinator = p.coordinators[n.Of].id
		} else {
			n.Coordinator = p.locate(n.Operation, n.Coordinator)
		}
	}
	edges := []graphEdge{}
	for _, e := range g.Edges {
		edge := graphEdge{WaitEdge: e, Since: stamp(e.Reason.Since)}
		if edge.Reason = (core.Reason{}); e.Reason.Kind != "" {
			edge.Text = p.words(e.Reason)
		}
		edges = append(edges, edge)
	}
	return object{"nodes": g.Nodes, "edges": edges, "cycles": g.Cycles, "seen": g.Seen, "missing": g.Missing}, nil
}

// words returns a reason as a text without durations, so that equal frames stay equal.
func (p *Page) words(r core.Reason) string {
	r.Key, r.What = p.redacted(r.Key), p.redacted(r.What)
	r.Signal.Name, r.Signal.Key = p.redacted(r.Signal.Name), p.redacted(r.Signal.Key)
	return cut(r.String())
}
