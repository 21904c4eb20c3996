package statuspage

import (
	"cmp"
	"errors"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// maxStack is how many bytes of a stack are shown.
const maxStack = 16_000

type errorGroup struct {
	Coordinator string       `json:"coordinator"`
	Text        string       `json:"text"` // with # in place of numbers and ids
	Count       int          `json:"count"`
	First       string       `json:"first"` // when the first and the last of them ended
	Last        string       `json:"last"`
	Example     operationRow `json:"example"` // the last one
	Stack       string       `json:"stack,omitempty"`
}

// failures puts the failed operations of the windows into groups with similar errors, the largest first.
func (p *Page) failures(in []*coordinator, limit int) any {
	type found struct {
		in *coordinator
		inspect.ErrorGroup
	}
	var all []found
	shown, others, more := []errorGroup{}, 0, false
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
		if i >= limit {
			others += g.Count
			continue
		}
		row := errorGroup{g.in.id, g.Text, g.Count, stamp(g.First), stamp(g.Example.Finished), p.operationRow(g.in, &g.Example), ""}
		if panicked, ok := errors.AsType[*core.PanicError](g.Example.Err); ok {
			row.Stack = cutTo(p.opts.Redact(string(panicked.Stack)), maxStack)
		}
		shown = append(shown, row)
	}
	return map[string]any{"groups": shown, "others": others, "more": more}
}
