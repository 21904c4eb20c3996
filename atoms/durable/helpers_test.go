package durable_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var errOnPurpose = errors.New("on purpose")

// keyOf returns what is before a slash.
func keyOf(item string) string {
	key, _, ok := strings.Cut(item, "/")
	if !ok {
		return ""
	}
	return key
}

// A shop is a store and the queues on it, in a bubble.
type shop struct {
	*testing.T
	store  durable.Store
	queues []*durable.Queue[string]
	runs   sync.WaitGroup
}

// inBubble runs a test in a bubble, and closes its queues.
func inBubble(t *testing.T, test func(s *shop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{T: t, store: durable.Memory()}
		test(s)
		for _, q := range s.queues {
			assert.NoError(t, q.Close())
		}
		s.runs.Wait()
	})
}

func (s *shop) queue(work core.Work[string], opts durable.Options) *durable.Queue[string] {
	s.Helper()
	q, err := durable.New(s.store, keyOf, work, opts)
	require.NoError(s, err)
	s.queues = append(s.queues, q)
	return q
}

// run runs a queue in the background.
func (s *shop) run(q *durable.Queue[string]) {
	s.runs.Go(func() { assert.NoError(s, q.Run(context.Background())) })
	synctest.Wait()
}

func (s *shop) serve(work core.Work[string], opts durable.Options) *durable.Queue[string] {
	s.Helper()
	q := s.queue(work, opts)
	s.run(q)
	return q
}

func (s *shop) enqueue(q *durable.Queue[string], items ...string) (ids []durable.ItemID) {
	s.Helper()
	for _, item := range items {
		id, err := q.Enqueue(s.Context(), item)
		require.NoError(s, err)
		ids = append(ids, id)
	}
	return ids
}

func (s *shop) explain(q *durable.Queue[string], id durable.ItemID) string {
	s.Helper()
	synctest.Wait()
	x, err := q.Explain(s.Context(), id)
	require.NoError(s, err)
	return x.String()
}

func (s *shop) stats(q *durable.Queue[string]) durable.Stats {
	s.Helper()
	synctest.Wait()
	stats, err := q.Stats(s.Context())
	require.NoError(s, err)
	return stats
}

// states returns the states of items, in words.
func (s *shop) states(q *durable.Queue[string], ids ...durable.ItemID) string {
	synctest.Wait()
	var words []string
	for _, id := range ids {
		x, err := q.Explain(s.Context(), id)
		require.NoError(s, err)
		words = append(words, x.Item.State.String())
	}
	return strings.Join(words, " ")
}

// A log records what bodies do.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// take returns the lines since the last take.
func (l *log) take() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Join(l.lines, " ")
	l.lines = nil
	return lines
}

// work records items and returns nil.
func (l *log) work(_ context.Context, item string) error {
	l.add(item)
	return nil
}

// sleeps records items and takes a second.
func (l *log) sleeps(ctx context.Context, item string) error {
	l.add(item)
	return sleep(ctx, time.Second)
}

// sleep does not start a timer for 0: the race detector can crash when several timers of a bubble are due at once.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// faulty is a store that can be cut off, and that can lose answers.
type faulty struct {
	durable.Store
	cut       atomic.Bool // nothing gets through
	loseClaim atomic.Bool // the answer of the next claim
	loseEnd   atomic.Bool // the answer of the next end
	slow      atomic.Bool // the answer of a turn that claims takes a second
	refused   string      // a key: turns with the end of its item fail
	beatTakes atomic.Int64
}

func (f *faulty) Insert(ctx context.Context, queue string, items []durable.Insert) ([]durable.Inserted, error) {
	if f.cut.Load() {
		return nil, errOnPurpose
	}
	return f.Store.Insert(ctx, queue, items)
}

func (f *faulty) Beat(ctx context.Context, node durable.Node, note string) (durable.Beaten, error) {
	if f.cut.Load() {
		<-ctx.Done()
		return durable.Beaten{}, context.Cause(ctx)
	}
	if err := sleep(ctx, time.Duration(f.beatTakes.Load())); err != nil {
		return durable.Beaten{}, err
	}
	return f.Store.Beat(ctx, node, note)
}

func (f *faulty) Turn(ctx context.Context, node durable.Node, ends []durable.End, want durable.Want) (durable.Turned, error) {
	if f.cut.Load() || slices.ContainsFunc(ends, func(e durable.End) bool { return f.refused != "" && e.Key == f.refused }) {
		return durable.Turned{}, errOnPurpose
	}
	t, err := f.Store.Turn(ctx, node, ends, want)
	if len(t.Items) > 0 && f.slow.Load() {
		time.Sleep(time.Second)
	}
	if len(t.Items) > 0 && f.loseClaim.Swap(false) || len(ends) > 0 && f.loseEnd.Swap(false) {
		return durable.Turned{}, durable.ErrUndecided
	}
	return t, err
}

// counting is a store that counts the turns.
type counting struct {
	durable.Store
	turns atomic.Int64
}

func (c *counting) Turn(ctx context.Context, node durable.Node, ends []durable.End, want durable.Want) (durable.Turned, error) {
	c.turns.Add(1)
	return c.Store.Turn(ctx, node, ends, want)
}

// claim claims up to most items without a queue.
func claim(s durable.Store, node durable.Node, most int) ([]durable.Item, error) {
	t, err := s.Turn(context.Background(), node, nil, durable.Want{Max: most})
	return t.Items, err
}

// endDone ends the claim of a body in the way of Finish.
func endDone(s durable.Store, c durable.Claim) (durable.Outcome, error) {
	t, err := s.Turn(context.Background(), durable.Node{Queue: c.Queue}, []durable.End{{ID: c.ID, Key: c.Key, Token: c.Token, Kind: durable.EndDone}}, durable.Want{})
	if err != nil {
		return 0, err
	}
	return t.Ends[0].Outcome, nil
}

func watch(s *shop, q *durable.Queue[string], pattern string) *coretest.Watcher {
	return coretest.Watch(s, q.Sink(), pattern)
}

// random is for several goroutines.
func (l *log) random(r *rand.Rand, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.IntN(n)
}
