package statuspage

import (
	"cmp"
	"context"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// maxStack is how many bytes of a stack are shown.
const maxStack = 16_000

// failures puts the failed operations of the windows into groups with similar errors, the largest first.
func (p *Page) failures(q query) (source, error) {
	type found struct {
		in *coordinator
		errorGroup
	}
	in, err := p.in(q, true)
	return func(context.Context, effort) (any, error) {
		var all []found
		shown, others, more := []object{}, 0, false
		for _, c := range in {
			err := p.guarded(func() {
				groups, rest, complete := groupErrors(c.is, func(err error) string { return p.said(err.Error) })
				others, more = others+rest, more || !complete
				for _, g := range groups {
					all = append(all, found{c, g})
				}
			})
			more = more || err != ""
		}
		slices.SortStableFunc(all, func(a, b found) int {
			return cmp.Or(b.count-a.count, b.example.Finished.Compare(a.example.Finished))
		})
		for i, g := range all {
			if i >= q.Limit {
				others += g.count
				continue
			}
			row := object{
				"coordinator": g.in.id, "text": g.text, "count": g.count,
				"first": stamp(g.first), "last": stamp(g.example.Finished), "example": p.operationRow(g.in, &g.example),
			}
			if panicked, ok := guard.As[*core.PanicError](g.example.Err); ok {
				row["stack"] = cutTo(p.opts.Redact(string(panicked.Stack)), maxStack)
			}
			shown = append(shown, row)
		}
		return object{"groups": shown, "others": others, "more": more}, nil
	}, err
}
