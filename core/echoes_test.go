package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func echoed(c *core.Coordinator[coretest.Body], q signals.Query) []core.OperationID {
	var ids []core.OperationID
	for e := range c.Echoes(q) {
		ids = append(ids, e.Operation)
	}
	return ids
}

// Echoes takes a pattern, also a comma list, and each echo has a time.
func TestEchoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		c := bodies(t, core.Options{Name: "orders", MaxTracked: -1, MaxConcurrency: 1, Sink: sink})
		do := func(key, signal string) core.OperationID {
			t.Helper()
			id := enqueue(t, c, func(ctx context.Context) error {
				op := core.OperationFrom(ctx)
				op.SetKey(key)
				if signal != "" {
					op.Raise(signal)
				}
				if signal == "error.disk" {
					return errOnPurpose
				}
				return nil
			})
			synctest.Wait()
			return id
		}
		a := do("alice", "error.disk")
		time.Sleep(time.Second)
		b := do("bob", "file.saved")
		n := do("alice", "")
		for _, test := range []struct {
			name string
			q    signals.Query
			want []core.OperationID
		}{
			{"all, oldest first", signals.Query{}, []core.OperationID{a, b, n}},
			{"pattern", signals.Query{Pattern: "error.*"}, []core.OperationID{a}},
			{"comma list", signals.Query{Pattern: "error.*, file.saved"}, []core.OperationID{a, b}},
			{"key", signals.Query{Key: "alice"}, []core.OperationID{a, n}},
			{"operation", signals.Query{Operation: b}, []core.OperationID{b}},
			{"source", signals.Query{Source: "orders"}, []core.OperationID{a, b, n}},
			{"another source", signals.Query{Source: "payments"}, nil},
			{"within", signals.Query{Within: 500 * time.Millisecond}, []core.OperationID{b, n}},
			{"key and pattern", signals.Query{Key: "alice", Pattern: "file.*"}, nil},
		} {
			checkSlice(t, test.name, echoed(c, test.q), test.want)
		}
		for e := range c.Echoes(signals.Query{}) { // leaving early is fine
			if e.Operation != a || e.Key != "alice" || e.Status != core.StatusFailed || e.Err != errOnPurpose ||
				len(e.Signals) != 1 || e.Signals[0].Name != "error.disk" || time.Since(e.Time) != time.Second {
				t.Errorf("got %+v, want the last words of operation %d", e, a)
			}
			break
		}
		checkEqual(t, "signals on the sink", sink.Count("*"), 0) // the echo alone has them
	})
}

func TestEchoesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxTracked: -1, MaxConcurrency: 1, EchoCapacity: 20, EchoAge: time.Minute})
		var ids []core.OperationID
		for i := range 50 {
			ids = append(ids, enqueue(t, c, raise(fmt.Sprint("s", i))))
			synctest.Wait()
			if got, want := echoed(c, signals.Query{}), ids[max(0, len(ids)-20):]; !slices.Equal(got, want) {
				t.Fatalf("got echoes %v, want %v", got, want)
			}
		}
		time.Sleep(time.Minute - 1)
		checkEqual(t, "just before", len(echoed(c, signals.Query{})), 20)
		time.Sleep(time.Nanosecond)
		checkEqual(t, "just after", len(echoed(c, signals.Query{})), 0)
	})
}

// Close makes echoes of the operations that were in the window. An echo has what its operation still showed then.
func TestEchoesOfClosedCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1})
		done := enqueue(t, c, func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.Raise("kept")
			op.Raise("retracted")
			op.Retract("retracted")
			op.Hold("held", 0)
			return nil
		})
		running, pending := enqueue(t, c, untilCancelled), enqueue(t, c, quick)
		synctest.Wait()
		closeDown(t, c)
		got := echoed(c, signals.Query{})
		slices.Sort(got)
		checkSlice(t, "echoes", got, []core.OperationID{done, running, pending})
		for e := range c.Echoes(signals.Query{Operation: done}) {
			checkSlice(t, "what was kept", names(e.Signals), []string{"kept"})
		}
	})
}

func TestNoEchoes(t *testing.T) {
	for name, opts := range map[string]core.Options{
		"no capacity": {MaxTracked: -1, EchoCapacity: -1},
		"no age":      {MaxTracked: -1, EchoAge: -1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := bodies(t, opts)
				checkError(t, "Do", c.Do(t.Context(), raise("x")), nil)
				synctest.Wait()
				checkEqual(t, "echoes", len(echoed(c, signals.Query{})), 0)
			})
		})
	}
}
