package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// bubble runs a test in a synctest bubble: time is the bubble's, and a goroutine
// left behind is a failure.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// bodies makes a coordinator whose items are bodies.
func bodies(_ testing.TB, opts core.Options) *core.Coordinator[coretest.Body] {
	return core.Must(core.NewCoordinator(coretest.Run, opts))
}

func coordinator[T any](_ testing.TB, work core.Work[T], opts core.Options) *core.Coordinator[T] {
	return core.Must(core.NewCoordinator(work, opts))
}

// enqueue enqueues an item that must be accepted.
func enqueue[T any](t testing.TB, c *core.Coordinator[T], item T) core.OperationID {
	t.Helper()
	id, err := c.TryEnqueue(context.Background(), item)
	if err != nil || id == 0 {
		t.Fatalf("TryEnqueue: got id %d and error %v, want it to be accepted", id, err)
	}
	return id
}

// accepted returns a check of what Enqueue has returned.
func accepted(t testing.TB) func(id core.OperationID, err error) {
	return func(id core.OperationID, err error) {
		if err != nil || id == 0 {
			t.Helper()
			t.Errorf("got id %d and error %v, want it to be accepted", id, err)
		}
	}
}

// gate is a body that runs until it is opened and ignores cancellation.
type gate struct {
	opened chan struct{}
	once   sync.Once
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) body(context.Context) error {
	<-g.opened
	return nil
}

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

func (g *gate) isOpen() bool {
	select {
	case <-g.opened:
		return true
	default:
		return false
	}
}

func quick(context.Context) error { return nil }

func untilCancelled(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

var errOnPurpose = errors.New("failed on purpose")

func raise(name string) coretest.Body {
	return func(ctx context.Context) error {
		core.OperationFrom(ctx).Raise(name)
		return nil
	}
}

// journal notes what happens, in order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) note(entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

func (j *journal) check(t testing.TB, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	coretest.Check(t, slices.Equal(j.entries, want), "what happened:\n got %q\nwant %q", j.entries, want)
	j.entries = nil
}

// checkAnyOrder is check for several goroutines that note at once.
func (j *journal) checkAnyOrder(t testing.TB, want ...string) {
	t.Helper()
	j.mu.Lock()
	slices.Sort(j.entries)
	j.mu.Unlock()
	j.check(t, want...)
}

func checkError(t testing.TB, what string, got, want error) {
	t.Helper()
	coretest.Check(t, errors.Is(got, want), "%s: got error %v, want %v", what, got, want)
}

func checkStatus[T any](t testing.TB, c *core.Coordinator[T], id core.OperationID, want core.Status) core.Snapshot {
	t.Helper()
	s, ok := c.Lookup(id)
	if !ok {
		t.Errorf("operation %d: not found, want it %v", id, want)
	} else if s.Status != want {
		t.Errorf("operation %d: got %v with error %v, want %v", id, s.Status, s.Err, want)
	}
	return s
}

func checkEqual[V comparable](t testing.TB, what string, got, want V) {
	t.Helper()
	coretest.Check(t, got == want, "%s: got %v, want %v", what, got, want)
}

// words joins values to a text that can be compared at once.
func words(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }

func checkSlice[V comparable](t testing.TB, what string, got, want []V) {
	t.Helper()
	coretest.Check(t, slices.Equal(got, want), "%s:\n got %v\nwant %v", what, got, want)
}

func checkRefusal(t testing.TB, err error, signal string) {
	t.Helper()
	refused, ok := errors.AsType[*core.RefusedError](err)
	if !ok {
		t.Errorf("got error %v, want a RefusedError", err)
	} else if refused.Signal.Name != signal {
		t.Errorf("refused because of signal %q, want %q", refused.Signal.Name, signal)
	}
}

func closeDown[T any](t testing.TB, c *core.Coordinator[T]) {
	t.Helper()
	checkError(t, "Close", c.Close(), nil)
}

var errCause = errors.New("cause")

// sensed lists the names of the signals that q selects, in order.
func sensed(from signals.Sensor, q signals.Query) []string {
	var names []string
	for s := range from.Sense(q) {
		names = append(names, s.Name)
	}
	return names
}

func names(facts []signals.Signal) (all []string) {
	for _, s := range facts {
		all = append(all, s.Name)
	}
	return all
}

// found lists the operations that q selects, in order.
func found(c core.Inspector, q core.OperationQuery) (ids []core.OperationID) {
	for s := range c.Operations(q) {
		ids = append(ids, s.ID)
	}
	return ids
}

func wantPanic(t *testing.T, want string, call func()) {
	t.Helper()
	defer func() {
		if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
			t.Errorf("got panic %q, want one that begins with %q", got, want)
		}
	}()
	call()
}

// checkSays checks that the text of v, such as an error, has each of these parts.
func checkSays(t testing.TB, what string, v any, parts ...string) {
	t.Helper()
	text := fmt.Sprint(v)
	for _, part := range parts {
		coretest.Check(t, strings.Contains(text, part), "%s: got %.1000q, want it to contain %q", what, text, part)
	}
}

// skipRace skips a test of allocations: the race detector allocates.
func skipRace(t *testing.T) {
	t.Helper()
	if coretest.Race {
		t.Skip("the race detector allocates")
	}
}
