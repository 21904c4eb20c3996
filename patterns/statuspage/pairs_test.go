package statuspage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// present leads to the coordinator that the program has at present.
type present struct {
	core.Inspector
	is atomic.Pointer[core.Coordinator[string]]
}

func (p *present) Stats() core.Stats { return p.is.Load().Stats() }

func (p *present) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return p.is.Load().Operations(q)
}

// Fault avoided: a coordinator that a program makes again behind one Inspector counts from 0 again, and its ids may be
// smaller. Then the throughput was nonsense, and nothing seemed to wait.
func TestCoordinatorMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := func(ctx context.Context, item string) error {
			if item == "" {
				return nil
			}
			return block(ctx, item)
		}
		later := newCoordinator(t, work, core.Options{Name: "c", MaxConcurrency: 1})
		require.NoError(t, later.Do(t.Context(), "")) // it has the smaller ids
		was := newCoordinator(t, work, core.Options{Name: "c", MaxConcurrency: 1})
		for range 10 {
			require.NoError(t, was.Do(t.Context(), ""))
		}
		enqueue(t, was, "a", "b")
		synctest.Wait()
		shown := &present{Inspector: was}
		shown.is.Store(was)
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{shown}})
		get(t, p, "overview")
		time.Sleep(1500 * time.Millisecond)
		was.Close()
		shown.is.Store(later)
		enqueue(t, later, "a", "b")
		time.Sleep(2 * time.Second)
		o := get(t, p, "overview")
		assert.Equal(t, []any{0.0, 0.0}, o.at("coordinators", 0, "throughput"))
		assert.Equal(t, "2000-01-01T00:00:01.500Z", o.at("coordinators", 0, "oldest"))
	})
}

// Fault avoided: a script that goes on after a restart of the program, with the last Seq of before, got no signals.
func TestSignalsAfterARestart(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.Raise("a")
	p := newPage(t, statuspage.Options{Sinks: map[string]*signals.Sink{"s": sink}})
	o := get(t, p, "signals?after=4711")
	assert.Equal(t, []any{"a"}, o.each("signals", "name"))
	assert.Empty(t, get(t, p, fmt.Sprint("signals?after=", o["last"]))["signals"])
}

// Fault avoided: the time of New grew with the third power of the number of equal names.
func TestManyEqualNames(t *testing.T) {
	c := newCoordinator(t, block, core.Options{Name: "c"})
	all := make([]core.Inspector, 300)
	for i := range all {
		all[i] = c
	}
	p := newPage(t, statuspage.Options{Coordinators: all, Sinks: map[string]*signals.Sink{"": c.Sink(), "s": c.Sink()}})
	assert.Equal(t, "c-300", get(t, p, "overview").at("coordinators", 299, "id"))
	assert.Less(t, testing.AllocsPerRun(1, func() { core.Must(statuspage.New(statuspage.Options{Coordinators: all})) }), 20.0*300)
	assert.EqualValues(t, 0, get(t, p, "signals?sink=unnamed")["last"], "a sink without a name can be chosen, too")
}

// Fault avoided: the page showed names that it did not accept, because JSON replaces what is no UTF-8.
func TestNamesThatAreNoUTF8(t *testing.T) {
	for _, name := range []string{"caf\xe9", "\xff\xfe\"<b>\n", strings.Repeat("ä", 20_000)} {
		c := newCoordinator(t, block, core.Options{Name: name})
		other := newCoordinator(t, block, core.Options{Name: strings.ReplaceAll(name, "\xe9", "\xe8")})
		s := &plans{names: []string{name}}
		p := newPage(t, statuspage.Options{
			Coordinators: []core.Inspector{c, other}, Sinks: map[string]*signals.Sink{name: c.Sink()}, View: statuspage.Loopback, Allow: anything,
			Queues: []inspect.StoredQueue{&store{name: name}}, Schedules: []inspect.Schedules{s},
		})
		o := get(t, p, "overview")
		ids := o.each("coordinators", "id")
		assert.NotEqual(t, ids[0], ids[1])
		schedule := o.at("schedules", 0, "name").(string)
		for target, shown := range map[string]any{
			"operations?coordinator=": ids[0], "signals?sink=": o.at("sinks", 0, "name"), "items?queue=": o.at("queues", 0, "name"),
			"schedule?schedule=" + escaped(schedule) + "&schedules=": o.at("schedules", 0, "group"),
		} {
			get(t, p, target+escaped(shown.(string)))
		}
		body, err := json.Marshal(map[string]string{"action": "runNow", "schedules": "nightly", "schedule": schedule})
		require.NoError(t, err)
		code, _ := act(t, p, "%s", body)
		assert.Equal(t, 200, code)
		assert.Equal(t, []string{"run " + name}, s.calls)
	}
}

// spoilt is schedules whose parser panics, and a queue whose store does.
type spoilt struct{ plans }

func (spoilt) Firings(string) []inspect.Firing                  { panic("in Firings") }
func (spoilt) RunNow(context.Context, string) error             { panic("in RunNow") }
func (*brokenStore) Again(context.Context, int64) (bool, error) { panic("in Again") }

// lost is an error that panics when it is asked for its text, as a nil pointer in an error does.
type lost struct{ text string }

func (l *lost) Error() string { return l.text }

// Fault avoided: if code of the program panicked in a view or an action, the connection ended without an answer, and the
// action was in no signal.
func TestPanicsInViewsAndActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, func(_ context.Context, item string) error {
			if item == "lost" {
				return (*lost)(nil)
			}
			return errors.New(item)
		}, core.Options{Name: "c"})
		for _, item := range []string{"lost", "found"} {
			c.Do(t.Context(), item)
		}
		p := newPage(t, statuspage.Options{
			Coordinators: []core.Inspector{c}, Queues: []inspect.StoredQueue{&brokenStore{store{name: "q"}}}, View: statuspage.Loopback, Allow: anything,
			Schedules: []inspect.Schedules{&brokenPlans{}, &spoilt{plans{names: []string{"report"}}}},
		})
		for target, text := range map[string]string{"schedule?schedules=nightly&schedule=report": "in Plans", "schedule?schedules=nightly-2&schedule=report": "in Firings"} {
			w := request(p, "GET", "/api/"+target, "", nil)
			assert.Equal(t, http.StatusInternalServerError, w.Code)
			assert.Contains(t, w.Body.String(), text)
		}
		texts := get(t, p, "operations").each("operations", "error")
		assert.Contains(t, texts[0], "nil pointer")
		assert.Equal(t, "found", texts[1])
		assert.Len(t, get(t, p, "errors")["groups"], 2)

		for body, text := range map[string]string{
			`{"action":"again","queue":"q","item":7}`:                              "in Again",
			`{"action":"runNow","schedules":"nightly","schedule":"report"}`:        "in Plans",
			`{"action":"pauseSchedule","schedules":"nightly","schedule":"report"}`: "in Plans",
			`{"action":"runNow","schedules":"nightly-2","schedule":"report"}`:      "in RunNow",
		} {
			code, answer := act(t, p, "%s", body)
			assert.Equal(t, http.StatusInternalServerError, code, body)
			assert.Contains(t, answer["error"], text)
		}
		assert.Equal(t, 4, p.Sink().Count(statuspage.SignalActed))
		assert.EqualValues(t, 4, p.Stats().Acted)
	})
}
