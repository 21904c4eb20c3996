package statuspage

import (
	"cmp"
	"context"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// maxStack is how many bytes of a stack are shown.
const maxStack = 16_000

// failures puts the failed operations of the windows into groups with similar errors, the largest first.
func (p *Page) failures(q query) (source, error) {
	type found struct {
		in *coordinator
		inspect.ErrorGroup
	}
	in, err := p.in(q, true)
	return func(context.Context, effort) (any, error) {
		var all []found
		shown, others, more := []object{}, 0, false
		for _, c := range in {
			err := p.guarded(func() {
				groups, rest, complete := inspect.Errors(c.is, func(err error) string { return p.said(err.Error) })
				others, more = others+rest, more || !complete
				for _, g := range groups {
					all = append(all, found{c, g})
				}
			})
			more = more || err != ""
		}
		slices.SortStableFunc(all, func(a, b found) int {
			return cmp.Or(b.Count-a.Count, b.Example.Finished.Compare(a.Example.Finished))
		})
		for i, g := range all {
			if i >= q.Limit {
				others += g.Count
				continue
			}
			row := object{
				"coordinator": g.in.id, "text": g.Text, "count": g.Count,
				"first": stamp(g.First), "last": stamp(g.Example.Finished), "example": p.operationRow(g.in, &g.Example),
			}
			if panicked, ok := guard.As[*core.PanicError](g.Example.Err); ok {
				row["stack"] = cutTo(p.opts.Redact(string(panicked.Stack)), maxStack)
			}
			shown = append(shown, row)
		}
		return object{"groups": shown, "others": others, "more": more}, nil
	}, err
}
