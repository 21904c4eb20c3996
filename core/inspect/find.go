package inspect

import (
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Find calls yield with the operation whose id is the text, whatever q says, and with those that q selects and that have
// the text in the key or the error; upper and lower case are the same. Shown returns a key or an error as people see it;
// nil leaves it as it is. Find ends when yield returns false, and ignores q.Limit. It reports whether it looked at all
// operations until then: it looks at [MaxLook] that q selects. It costs as much as Operations.
func Find(c core.Inspector, text string, q core.OperationQuery, shown func(string) string, yield func(core.Snapshot) bool) (all bool) {
	id, _ := strconv.ParseUint(text, 10, 64)
	if s, ok := c.Lookup(core.OperationID(id)); ok && !yield(s) {
		return true
	}
	if shown == nil {
		shown = func(text string) string { return text }
	}
	wanted, looked := strings.ToLower(text), 0
	has := func(text string) bool { return strings.Contains(strings.ToLower(shown(text)), wanted) }
	q.Limit = MaxLook
	for s := range c.Operations(q) {
		looked++
		if uint64(s.ID) != id && (has(s.Key) || s.Err != nil && has(guard.Text(s.Err))) && !yield(s) {
			return true
		}
	}
	return looked < MaxLook
}
