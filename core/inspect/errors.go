package inspect

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	// MaxLook is how many operations of a coordinator [Errors] and [Find] look at, besides those of other states.
	MaxLook = 50_000
	// MaxGroups is how many groups [Errors] makes.
	MaxGroups = 1000
)

// An ErrorGroup is failed operations whose errors differ in numbers and ids only.
type ErrorGroup struct {
	Text    string // with # in place of numbers and ids
	Count   int
	First   time.Time     // when the first of them ended
	Example core.Snapshot // the one that ended last
}

// Errors puts the failed operations that a coordinator still shows into groups, the largest first. It masks numbers,
// UUIDs, hexadecimal numbers, quoted words with a digit, and words of 16 or more letters and digits. Text returns the
// text of an error; nil means its method Error. Others is the number of failed operations in no group, because there are
// [MaxGroups] already. All reports whether all failed operations were looked at: at most the newest [MaxLook]. It costs as
// much as Operations, and a microsecond or more for each text that is not like the one before.
func Errors(c core.Inspector, text func(error) string) (groups []ErrorGroup, others int, all bool) {
	if text == nil {
		text = error.Error
	}
	masked, known, looked := map[string]string{}, map[string]*ErrorGroup{}, 0
	for s := range c.Operations(core.OperationQuery{Status: core.StatusFailed, NewestFirst: true, Limit: MaxLook}) {
		looked++
		said := text(s.Err)
		label, ok := masked[said]
		if !ok {
			label = mask(said)
			masked[said] = label
		}
		g := known[label]
		switch {
		case g == nil && len(known) == MaxGroups:
			others++
			continue
		case g == nil:
			g = &ErrorGroup{Text: label, First: s.Finished, Example: s}
			known[label] = g
		case s.Finished.Before(g.First):
			g.First = s.Finished
		case s.Finished.After(g.Example.Finished):
			g.Example = s
		}
		g.Count++
	}
	for _, g := range slices.SortedFunc(maps.Values(known), func(a, b *ErrorGroup) int {
		return cmp.Or(b.Count-a.Count, b.Example.Finished.Compare(a.Example.Finished), cmp.Compare(a.Text, b.Text))
	}) {
		groups = append(groups, *g)
	}
	return groups, others, looked < MaxLook
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
