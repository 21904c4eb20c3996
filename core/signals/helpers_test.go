package signals_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
func bodies(t testing.TB, opts core.Options) *core.Coordinator[coretest.Body] {
	t.Helper()
	return coordinator(t, coretest.Run, opts)
}

func coordinator[T any](t testing.TB, work core.Work[T], opts core.Options) *core.Coordinator[T] {
	t.Helper()
	c, err := core.NewCoordinator(work, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
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

func raise(name string) coretest.Body {
	return func(ctx context.Context) error {
		core.OperationFrom(ctx).Raise(name)
		return nil
	}
}

func checkPanics(t testing.TB, call func()) {
	t.Helper()
	defer func() {
		coretest.Check(t, recover() != nil, "did not panic")
	}()
	call()
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

func closeDown[T any](t testing.TB, c *core.Coordinator[T]) {
	t.Helper()
	checkError(t, "Close", c.Close(), nil)
}

// begin is when time begins in a bubble.
var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// gated makes a coordinator on a sink whose items do nothing.
func gated(t *testing.T, opts core.Options) (*core.Coordinator[int], *signals.Sink) {
	t.Helper()
	if opts.Sink == nil {
		opts.Sink = signals.NewSink(signals.SinkOptions{Capacity: 10})
	}
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, opts))
	t.Cleanup(func() { c.Close() })
	return c, opts.Sink
}

// inBody runs a test inside a body, and waits for it.
func inBody(t *testing.T, opts core.Options, test func(ctx context.Context, op *core.Operation, c *core.Coordinator[coretest.Body])) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		c := bodies(t, opts)
		err := c.Do(t.Context(), func(ctx context.Context) error {
			test(ctx, core.OperationFrom(ctx), c)
			return nil
		})
		checkError(t, "Do", err, nil)
		closeDown(t, c)
	})
}

func logged(v any) string {
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key != "x" || a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).Info("", "x", v)
	return strings.TrimSpace(out.String())
}

func wantAllocs(t *testing.T, what string, want float64, fn func()) {
	t.Helper()
	if got := testing.AllocsPerRun(2000, fn); got > want {
		t.Errorf("%s: got %v allocations, want %v", what, got, want)
	}
}
