package statuspage

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

const (
	maxLook   = 50_000 // how many operations of a coordinator groupErrors and findOperations look at, besides those of other states
	maxGroups = 1000   // how many groups groupErrors makes
)

// An errorGroup is failed operations whose errors differ in numbers and ids only.
type errorGroup struct {
	text    string // with # in place of numbers and ids
	count   int
	first   time.Time     // when the first of them ended
	example core.Snapshot // the one that ended last
}

// groupErrors puts the failed operations that a coordinator still shows into groups, the largest first. It masks numbers,
// UUIDs, hexadecimal numbers, quoted words with a digit, and words of 16 or more letters and digits. Text returns the
// text of an error. Others is the number of failed operations in no group, because there are
// maxGroups already. All reports whether all failed operations were looked at: at most the newest maxLook. It costs as
// much as Operations, and a microsecond or more for each text that is not like the one before.
func groupErrors(c core.Inspector, text func(error) string) (groups []errorGroup, others int, all bool) {
	masked, known, looked := map[string]string{}, map[string]*errorGroup{}, 0
	for s := range c.Operations(core.OperationQuery{Status: core.StatusFailed, NewestFirst: true, Limit: maxLook}) {
		looked++
		said := text(s.Err)
		label, ok := masked[said]
		if !ok {
			label = mask(said)
			masked[said] = label
		}
		g := known[label]
		switch {
		case g == nil && len(known) == maxGroups:
			others++
			continue
		case g == nil:
			g = &errorGroup{text: label, first: s.Finished, example: s}
			known[label] = g
		case s.Finished.Before(g.first):
			g.first = s.Finished
		case s.Finished.After(g.example.Finished):
			g.example = s
		}
		g.count++
	}
	for _, g := range slices.SortedFunc(maps.Values(known), func(a, b *errorGroup) int {
		return cmp.Or(b.count-a.count, b.example.Finished.Compare(a.example.Finished), cmp.Compare(a.text, b.text))
	}) {
		groups = append(groups, *g)
	}
	return groups, others, looked < maxLook
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

// findOperations calls yield with the operation whose id is the text, whatever q says, and with those that q selects and that have
// the text in the key or the error; upper and lower case are the same. Shown returns a key or an error as people see it.
// It ends when yield returns false, and ignores q.Limit. It reports whether it looked at all
// operations until then: it looks at maxLook that q selects. It costs as much as Operations.
func findOperations(c core.Inspector, text string, q core.OperationQuery, shown func(string) string, yield func(core.Snapshot) bool) (all bool) {
	id, _ := strconv.ParseUint(text, 10, 64)
	if s, ok := c.Lookup(core.OperationID(id)); ok && !yield(s) {
		return true
	}
	wanted, looked := strings.ToLower(text), 0
	has := func(text string) bool { return strings.Contains(strings.ToLower(shown(text)), wanted) }
	q.Limit = maxLook
	for s := range c.Operations(q) {
		looked++
		if uint64(s.ID) != id && (has(s.Key) || s.Err != nil && has(guard.Text(s.Err))) && !yield(s) {
			return true
		}
	}
	return looked < maxLook
}
