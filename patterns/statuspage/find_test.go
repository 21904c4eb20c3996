package statuspage_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// A search finds ids, and parts of keys and errors as they are shown, in all coordinators. Other parameters hold, too.
func TestFind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := func(_ context.Context, item string) error {
			if strings.HasPrefix(item, "bad") {
				return fmt.Errorf("card of %s declined, secret 4711", item)
			}
			return nil
		}
		newKeyed := func(name string) *core.Coordinator[string] {
			c, err := core.NewKeyedCoordinator(func(s string) string { return s }, work, core.Options{Name: name})
			require.NoError(t, err)
			t.Cleanup(func() { c.Close() })
			return c
		}
		a, b := newKeyed("a"), newKeyed("b")
		p := newPage(t, statuspage.Options{
			Coordinators: []core.Inspector{a, b, unsearchable{a.Control}},
			Redact:       func(text string) string { return strings.ReplaceAll(text, "4711", "xxx") },
		})
		var ids []any
		for i, item := range []string{"ada", "bad-ADA", "bob", "bad-eve"} {
			ids = append(ids, id(enqueue(t, []*core.Coordinator[string]{a, b}[i%2], item)[0]))
			time.Sleep(time.Second)
		}
		for query, want := range map[string][]any{
			fmt.Sprint("find=", ids[3]):               ids[3:],
			fmt.Sprint("find=", ids[3], "&limit=1"):   ids[3:],
			"find=aDa":                                ids[:2],
			"find=ada&order=newest":                   {ids[1], ids[0]},
			"find=DECLINED&limit=1&order=newest":      ids[3:],
			"find=declined&limit=1":                   ids[1:2],
			"find=xxx":                                {ids[1], ids[3]},
			"find=4711":                               nil,
			"find=ada&coordinator=a":                  ids[:1],
			"find=ada&status=failed":                  ids[1:2],
			"find=ada&status=failed&coordinator=a":    nil,
			"find=999999999":                          nil,
			"find=18446744073709551616&status=failed": nil,
		} {
			o := get(t, p, "operations?"+query)
			assert.Equal(t, want, o.each("operations", "id"), query)
			assert.EqualValues(t, 0, o["next"])
			assert.Equal(t, !strings.Contains(query, "coordinator"), o["more"], "one coordinator panics, and is not among the answers")
		}
		assert.Equal(t, "b", get(t, p, "operations?find=eve").at("operations", 0, "coordinator"))
		assert.EqualValues(t, 2, get(t, p, "operations?find=declined&limit=1")["matches"])
		w := request(p, "GET", "/api/operations?find=ada&after=1", "", nil)
		assert.Equal(t, 400, w.Code)
	})
}

// unsearchable is a coordinator that panics when it is asked for operations.
type unsearchable struct{ core.Control }

func (unsearchable) Lookup(core.OperationID) (core.Snapshot, bool) { panic("in Lookup") }

// The number of matches is exact up to 1,000, and is not of the present page only.
func TestMatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := core.NewKeyedCoordinator(func(string) string { return "no" }, block, core.Options{Name: "c", MaxQueued: 2000})
		require.NoError(t, err)
		defer c.Close()
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}})
		first := enqueue(t, c, make([]string, 1000)...)[0]
		synctest.Wait()
		for _, query := range []string{"limit=50", "after=" + first.String(), "limit=200&order=newest", "find=no"} {
			o := get(t, p, "operations?"+query)
			assert.Equal(t, []any{1000.0, false}, []any{o["matches"], o["more"]}, query)
		}
		frame, end, err := statuspage.Frames(p, "view=operations&status=pending,running")
		require.NoError(t, err)
		defer end()
		enqueue(t, c, "")
		synctest.Wait()
		assert.Equal(t, false, decode(t, string(frame()))["more"], "counted at most every two seconds")
		time.Sleep(2 * time.Second)
		assert.Equal(t, true, decode(t, string(frame()))["more"])
		o := get(t, p, "operations?find=no")
		assert.Equal(t, []any{1000.0, true}, []any{o["matches"], o["more"]})
		assert.EqualValues(t, 1, get(t, p, "operations?find="+first.String())["matches"])
	})
}

// A pending operation says in its first frame why it waits, even if there are more than a frame has time for.
func TestFreshRowsSayWhyTheyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, block, core.Options{Name: "c", MaxConcurrency: 1})
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{slowToExplain{c.Control}}})
		frame, end, err := statuspage.Frames(p, "view=operations&status=pending&limit=100")
		require.NoError(t, err)
		defer end()
		enqueue(t, c, make([]string, 101)...)
		synctest.Wait()
		texts := decode(t, string(frame())).each("operations", "waits")
		assert.Contains(t, texts[2], "2 items before it go first", "there is time for these")
		assert.Equal(t, slices.Repeat([]any{"1 of 1 slots are taken, and 100 items are pending"}, 97), texts[3:])
		c.Pause()
		enqueue(t, c, "")
		texts = decode(t, string(frame())).each("operations", "waits")
		assert.Contains(t, texts[5], "5 items before it go first")
		assert.Equal(t, "the coordinator is paused", texts[99])
	})
}

// slowToExplain needs 10 ms for an explanation.
type slowToExplain struct{ core.Control }

func (s slowToExplain) Explain(id core.OperationID) (core.Explanation, bool) {
	time.Sleep(10 * time.Millisecond)
	return s.Control.Explain(id)
}
