package keyedpriorityfanout_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/keyedpriorityfanout"
)

// user returns the text before the slash in an item.
func user(item string) string { name, _, _ := strings.Cut(item, "/"); return name }

func second(context.Context, string) error { time.Sleep(time.Second); return nil }

// The slots are for the hot user, nine others, and one whose items are urgent.
func TestHotKeyDelaysNoOtherAndPriorityOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		last, begun := map[string]time.Duration{}, time.Now()
		c := core.Must(keyedpriorityfanout.New(user, second, core.Lane{}, core.Options{
			MaxConcurrency: 11, Ageing: -1,
			OnDone: func(s core.Snapshot) {
				mu.Lock()
				defer mu.Unlock()
				last[s.Item.(string)] = s.Finished.Sub(begun)
			},
		}))
		urgent := c.Lane(keyedpriorityfanout.Priority)
		for range 1000 {
			core.Must(c.Enqueue(t.Context(), "hot/order"))
		}
		synctest.Wait()
		core.Must(urgent.Enqueue(t.Context(), "hot/cancel"))
		want := map[string]time.Duration{"hot/order": 1001 * time.Second, "hot/cancel": 2 * time.Second, "vip/order": 10 * time.Second}
		for range 10 {
			core.Must(urgent.Enqueue(t.Context(), "vip/order"))
		}
		for i := range 10 * 9 {
			item := strconv.Itoa(i%9) + "/order"
			core.Must(c.Enqueue(t.Context(), item))
			want[item] = 10 * time.Second
		}
		require.NoError(t, c.Drain(t.Context()))
		require.Equal(t, want, last)
	})
}

func TestRulesAreForThePriorityLaneOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		coretest.NothingLeft(t, sink, func() {
			lane := core.Lane{Name: "priority", Depth: 2, CancelOn: "circuit.open.*", DeferOn: "calm"}
			c := core.Must(keyedpriorityfanout.New(user, second, lane, core.Options{MaxConcurrency: 1, Sink: sink}))
			urgent := c.Lane(keyedpriorityfanout.Priority)
			calm := sink.Hold("calm", "", 0)
			for range 2 {
				core.Must(c.Enqueue(t.Context(), "ada/order"))
				core.Must(urgent.TryEnqueue(t.Context(), "ada/cancel"))
			}
			_, err := urgent.TryEnqueue(t.Context(), "ada/cancel")
			require.ErrorIs(t, err, core.ErrFull)
			time.Sleep(time.Minute)
			require.EqualValues(t, 2, c.Stats().Succeeded, "normal items run")
			require.Equal(t, 2, c.Stats().Lanes[0].Pending)
			calm()
			synctest.Wait()
			require.Equal(t, 1, c.Stats().Lanes[0].Running, "urgent items go on, without a further one")

			open := sink.Hold("circuit.open.api", "", 0)
			_, err = urgent.TryEnqueue(t.Context(), "ada/cancel")
			require.ErrorAs(t, err, new(*core.RefusedError))
			core.Must(c.Enqueue(t.Context(), "ada/order"))
			require.NoError(t, c.Drain(t.Context()))
			require.EqualValues(t, 1, c.Stats().Refused, "the one that waited")
			require.EqualValues(t, 4, c.Stats().Succeeded)
			open()
		})
	})
}

func TestErrors(t *testing.T) {
	for want, wrong := range map[string]struct {
		lane core.Lane
		opts core.Options
	}{
		"Options.Lanes is set":         {opts: core.Options{Lanes: []core.Lane{{Name: "a"}}}},
		`Lane.Name is "urgent"`:        {lane: core.Lane{Name: "urgent"}},
		"Options.Sink is nil":          {lane: core.Lane{DeferOn: "calm"}},
		"core: Options.MaxPerKey is -": {opts: core.Options{MaxPerKey: -1}},
	} {
		_, err := keyedpriorityfanout.New(user, second, wrong.lane, wrong.opts)
		require.ErrorContains(t, err, "keyedpriorityfanout: "+want)
	}
}
