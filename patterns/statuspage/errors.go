package statuspage

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// At most maxGroups groups of errors are counted. A stack is cut to maxStack bytes.
const maxGroups, maxStack = 1000, 16_000

// errorsSource puts the failed operations of the windows into groups with similar errors.
type errorsSource struct {
	page   *Page
	in     []*coordinator
	limit  int
	masked map[string]string // of the error texts of the last frame
}

type errorsFrame struct {
	Groups []errorGroup `json:"groups"` // the largest first
	Others int          `json:"others"` // failed operations that are in no group here
	More   bool         `json:"more"`   // not all operations were looked at
}

type errorGroup struct {
	Coordinator string        `json:"coordinator"`
	Text        string        `json:"text"` // with # in place of numbers and ids
	Count       int           `json:"count"`
	First       string        `json:"first"` // when the first and the last of them ended
	Last        string        `json:"last"`
	Example     *operationRow `json:"example"` // the last one
	Stack       string        `json:"stack,omitempty"`
	first       time.Time
	last        core.Snapshot
	in          *coordinator
}

func (v *errorsSource) frame(context.Context, effort) (any, error) {
	shown, masked := errorsFrame{}, map[string]string{}
	groups := map[[2]string]*errorGroup{}
	for _, c := range v.in {
		looked := 0
		err := guarded(func() error {
			for s := range c.is.Operations(core.OperationQuery{Status: core.StatusFailed, NewestFirst: true, Limit: maxLooked}) {
				looked++
				text := v.page.redacted(s.Err.Error())
				label, ok := masked[text]
				if !ok {
					if label, ok = v.masked[text]; !ok {
						label = mask(text)
					}
					masked[text] = label
				}
				g := groups[[2]string{c.id, label}]
				switch {
				case g == nil && len(groups) == maxGroups:
					shown.Others++
					continue
				case g == nil:
					g = &errorGroup{Coordinator: c.id, Text: label, first: s.Finished, last: s, in: c}
					groups[[2]string{c.id, label}] = g
				case s.Finished.Before(g.first):
					g.first = s.Finished
				case s.Finished.After(g.last.Finished):
					g.last = s
				}
				g.Count++
			}
			return nil
		})
		shown.More = shown.More || err != nil || looked == maxLooked
	}
	v.masked = masked
	all := slices.SortedFunc(maps.Values(groups), func(a, b *errorGroup) int {
		return cmp.Or(b.Count-a.Count, b.last.Finished.Compare(a.last.Finished), cmp.Compare(a.Coordinator+a.Text, b.Coordinator+b.Text))
	})
	shown.Groups = make([]errorGroup, 0, min(len(all), v.limit))
	for i, g := range all {
		if i >= v.limit {
			shown.Others += g.Count
			continue
		}
		g.First, g.Last, g.Example = stamp(g.first), stamp(g.last.Finished), new(v.page.operationRow(g.in, &g.last))
		if p, ok := errors.AsType[*core.PanicError](g.last.Err); ok {
			g.Stack = cutTo(v.page.opts.Redact(string(p.Stack)), maxStack)
		}
		shown.Groups = append(shown.Groups, *g)
	}
	return shown, nil
}

// ids matches what may be a number or an id: a quoted word, a UUID, a long word, a hexadecimal number, a number.
var ids = regexp.MustCompile(`"[^"\s]*\d[^"\s]*"|'[^'\s]*\d[^'\s]*'|[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}|0x[[:xdigit:]]+|[0-9A-Za-z]{16,}|[[:xdigit:]]{8,}|\d+(\.\d+)*`)

// mask puts # in place of numbers and ids. A word without a digit stays.
func mask(text string) string {
	return ids.ReplaceAllStringFunc(text, func(id string) string {
		if !strings.ContainsAny(id, "0123456789") {
			return id
		}
		return "#"
	})
}
