package statuspage

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// maxStack is how many bytes of a stack are shown.
const maxStack = 16_000

// errorsSource puts the failed operations of the windows into groups with similar errors.
type errorsSource struct {
	page  *Page
	in    []*coordinator
	limit int
}

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
	last        core.Snapshot
	in          *coordinator
}

func (v *errorsSource) frame(context.Context, effort) (any, error) {
	shown, p := errorsFrame{Groups: []errorGroup{}}, v.page
	for _, c := range v.in {
		err := guarded(func() error {
			groups, others, all := inspect.Errors(c.is, func(err error) string { return p.redacted(err.Error()) })
			for _, g := range groups {
				shown.Groups = append(shown.Groups, errorGroup{Coordinator: c.id, Text: g.Text, Count: g.Count, First: stamp(g.First), Last: stamp(g.Example.Finished), last: g.Example, in: c})
			}
			shown.Others, shown.More = shown.Others+others, shown.More || !all
			return nil
		})
		shown.More = shown.More || err != nil
	}
	slices.SortStableFunc(shown.Groups, func(a, b errorGroup) int {
		return cmp.Or(b.Count-a.Count, b.last.Finished.Compare(a.last.Finished))
	})
	for _, g := range shown.Groups[min(len(shown.Groups), v.limit):] {
		shown.Others += g.Count
	}
	shown.Groups = shown.Groups[:min(len(shown.Groups), v.limit)]
	for i := range shown.Groups {
		g := &shown.Groups[i]
		g.Example = p.operationRow(g.in, &g.last)
		if panicked, ok := errors.AsType[*core.PanicError](g.last.Err); ok {
			g.Stack = cutTo(p.opts.Redact(string(panicked.Stack)), maxStack)
		}
	}
	return shown, nil
}
