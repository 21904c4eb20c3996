package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Parts end in order, so that the first can still hand its items on. After that, each part can still list what
// failed.
func TestShutdownDrainsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got []int
		last := coordinator(t, func(_ context.Context, n int) error { got = append(got, n); return nil }, core.Options{MaxConcurrency: 1})
		middle := coordinator(t, func(ctx context.Context, n int) error {
			time.Sleep(time.Second)
			_, err := last.Enqueue(ctx, n)
			return err
		}, core.Options{MaxConcurrency: 1})
		first := coordinator(t, func(ctx context.Context, n int) error {
			if n == 3 {
				return errOnPurpose
			}
			_, err := middle.Enqueue(ctx, n)
			return err
		}, core.Options{MaxConcurrency: 1})
		for n := range 5 {
			enqueue(t, first, n)
		}
		for range 2 {
			checkError(t, "Shutdown", core.Shutdown(t.Context(), first, core.InOrder(middle, last)), nil)
		}
		checkSlice(t, "what came out", got, []int{0, 1, 2, 4})
		for op := range first.Operations(core.OperationQuery{Status: core.StatusFailed}) {
			checkEqual(t, "failed", op.Item.(int), 3)
		}
		checkEqual(t, "failed", first.Stats().Failed, 1)
		_, err := last.TryEnqueue(t.Context(), 1)
		checkError(t, "after Shutdown", err, core.ErrClosed)
		checkError(t, "nothing", core.Shutdown(t.Context()), nil)
		wantPanic(t, "core: Shutdown needs parts", func() { core.Shutdown(t.Context(), first, nil) })
	})
}

// When the context ends, Shutdown returns at once, though a body ignores its own context. The error says for each
// part what has not ended and why, and all of that is cancelled.
func TestShutdownNamesWhatStillRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		deaf := newGate()
		orders := bodies(t, core.Options{Name: "orders", MaxConcurrency: 3})
		mails := bodies(t, core.Options{Name: "mails", MaxConcurrency: 1})
		paused := bodies(t, core.Options{Name: "paused"})
		paused.Pause()
		stuck := enqueue(t, orders, deaf.body)
		mail := enqueue(t, mails, untilCancelled)
		waits := enqueue(t, orders, func(ctx context.Context) error { return mails.Wait(ctx, mail) })
		sleeps := enqueue(t, orders, func(ctx context.Context) error {
			return core.OperationFrom(ctx).Suspend(ctx, "an answer", untilCancelled)
		})
		synctest.Wait()
		full := enqueue(t, orders, deaf.body)
		for range 20 {
			enqueue(t, orders, quick)
		}
		never := enqueue(t, paused, quick)
		late := enqueue(t, mails, quick)
		idle := bodies(t, core.Options{Name: "idle"})
		hidden := bodies(t, core.Options{})
		enqueue(t, hidden, untilCancelled)
		foreign := struct{ core.Lifecycle }{hidden}

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		err := core.Shutdown(ctx, orders, core.InOrder(mails, idle), paused, foreign)
		checkEqual(t, "Shutdown took", time.Since(begun), time.Minute)
		checkError(t, "Shutdown", err, context.DeadlineExceeded)
		text := fmt.Sprint(err, "\n")
		checkSays(t, "Shutdown", text,
			`core: "orders" is closed before it is drained: context deadline exceeded`,
			fmt.Sprintf("\n\toperation %d is running\n", stuck),
			fmt.Sprintf("\n\toperation %d is running: its body waits for operation %d of \"mails\"", waits, mail),
			fmt.Sprintf("\n\toperation %d is suspended: its body waits for an answer, for 1m0s\n", sleeps),
			fmt.Sprintf("\n\toperation %d is running\n", full),
			"\n\tand 4 more\n",
			fmt.Sprintf("core: \"mails\" is closed before it is drained: context deadline exceeded\n\toperation %d is running\n\toperation %d is pending: the only slot is taken by operation %d, for 1m0s\n", mail, late, mail),
			fmt.Sprintf("core: \"paused\" is closed before it is drained: context deadline exceeded\n\toperation %d is pending: the coordinator is paused", never),
			"core: struct { core.Lifecycle } is closed before it is drained: context deadline exceeded",
		)
		checkEqual(t, "idle in the error", strings.Contains(text, "idle"), false)
		synctest.Wait()
		for _, c := range []core.Control{mails.Control, paused.Control} {
			checkEqual(t, c.Name()+" cancelled", c.Stats().Cancelled, c.Stats().Enqueued)
		}
		checkEqual(t, "running", orders.Stats().Running, 2) // those that ignore their contexts
		deaf.open()
		checkError(t, "Close", errors.Join(orders.Close(), foreign.Close()), nil)
	})
}

// Inside a body, its own part is closed and the others are drained. An error that is not of the context does not keep
// later parts from being drained.
func TestShutdownFromABody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		other := bodies(t, core.Options{})
		id := enqueue(t, other, func(context.Context) error { time.Sleep(time.Second); return nil })
		own := bodies(t, core.Options{})
		var err, cause error
		enqueue(t, own, func(ctx context.Context) error {
			err = core.Shutdown(context.WithoutCancel(ctx), own, other)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		checkError(t, "Shutdown", err, core.ErrWouldDeadlock)
		checkError(t, "cause", cause, core.ErrClosed)
		checkStatus(t, other, id, core.StatusSucceeded)
		checkEqual(t, "closed", own.Stats().Closed && other.Stats().Closed, true)
	})
}

// Stages are flushed and closed from the first one on: nothing on its way is lost. Drain and Stop end with the first
// error; later stages stay open for what still runs.
func TestInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got []int
		stop := make(chan bool)
		last := coordinator(t, func(_ context.Context, n int) error { got = append(got, n); return nil }, core.Options{MaxConcurrency: 1})
		first := coordinator(t, func(ctx context.Context, n int) error {
			if n == 5 {
				<-stop
			}
			_, err := last.Enqueue(context.WithoutCancel(ctx), n)
			return err
		}, core.Options{MaxConcurrency: 1})
		both := core.InOrder(first, last)
		for n := range 5 {
			enqueue(t, first, n)
		}
		checkError(t, "Flush", both.Flush(t.Context()), nil)
		checkSlice(t, "what came out", got, slices.Collect(upTo(5)))

		enqueue(t, first, 5)
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errCause)
		checkError(t, "Drain", both.Drain(ctx), errCause)
		checkError(t, "Stop", both.Stop(ctx), errCause)
		close(stop)
		synctest.Wait()
		checkSlice(t, "what came out", got, slices.Collect(upTo(6)))
		checkError(t, "Stop", both.Stop(t.Context()), nil)
		checkError(t, "Close", both.Close(), nil)
		_, err := last.TryEnqueue(t.Context(), 1)
		checkError(t, "after Close", err, core.ErrClosed)
		checkError(t, "none", core.InOrder().Drain(ctx), nil)
	})
}
