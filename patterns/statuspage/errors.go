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

type errorsFrame struct {
	Groups []errorGroup `json:"groups"` // the largest first
	Others int          `json:"others"` // failed operations that are in no group here
	More   bool         `json:"more"`   // not all operations were looked at
}

type errorGroup struct {
	Coordinator string       `json:"coordinator"`
	Text        string       `json:"text"` // with # in place of numbers and ids
	Count       int          `json:"count"`
	First       string       `json:"first"` // when the first and the last of them ended
	Last        string       `json:"last"`
	Example     operationRow `json:"example"` // the last one
	Stack       string       `json:"stack,omitempty"`
}

// failures puts the failed operations of the windows into groups with similar errors.
func (p *Page) failures(in []*coordinator, limit int) errorsFrame {
	shown := errorsFrame{Groups: []errorGroup{}}
	for _, c := range in {
		err := guarded(func() error {
			groups, others, all := inspect.Errors(c.is, func(err error) string { return p.redacted(err.Error()) })
			shown.Others, shown.More = shown.Others+others, shown.More || !all
			for i, g := range groups {
				if i >= limit {
					shown.Others += g.Count
					continue
				}
				row := errorGroup{Coordinator: c.id, Text: g.Text, Count: g.Count, First: stamp(g.First), Last: stamp(g.Example.Finished), Example: p.operationRow(c, &g.Example)}
				if panicked, ok := errors.AsType[*core.PanicError](g.Example.Err); ok {
					row.Stack = cutTo(p.opts.Redact(string(panicked.Stack)), maxStack)
				}
				shown.Groups = append(shown.Groups, row)
			}
			return nil
		})
		shown.More = shown.More || err != nil
	}
	slices.SortStableFunc(shown.Groups, func(a, b errorGroup) int { return cmp.Or(b.Count-a.Count, cmp.Compare(b.Last, a.Last)) })
	for _, g := range shown.Groups[min(len(shown.Groups), limit):] {
		shown.Others += g.Count
	}
	shown.Groups = shown.Groups[:min(len(shown.Groups), limit)]
	return shown
}
