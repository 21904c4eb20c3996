package core_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
)

// The items of these tests: the body of waiter waits for target, whose OnDone blocks; others only end.
const (
	waiter = iota
	target
	others
)

// A wait for an operation that leaves the window before its OnDone has returned ends with the result, once OnDone has
// returned. A body that waits so has given up its slot meanwhile.
func TestOperationLeavesTheWindowBeforeOnDoneReturns(t *testing.T) {
	type coordinator = *core.ResultCoordinator[int, int]
	for name, out := range map[string]struct {
		tracked int
		leave   func(t *testing.T, c coordinator)
		inside  func(c coordinator, id core.OperationID)
		err     error // of a body that waits
	}{
		"no window": {tracked: -1},
		"pushed out": {tracked: 1, leave: func(t *testing.T, c coordinator) {
			for range 2 {
				accepted(t)(c.TryEnqueue(t.Context(), others))
			}
		}},
		"evicted": {inside: func(c coordinator, id core.OperationID) { c.Evict(id) }},
		"closed":  {leave: func(t *testing.T, c coordinator) { go c.Close() }, err: core.ErrClosed},
	} {
		for how, wait := range map[string]func(ctx context.Context, c coordinator) (int, error){
			"Do": func(ctx context.Context, c coordinator) (int, error) { return c.Do(ctx, target) },
			"Wait": func(ctx context.Context, c coordinator) (int, error) {
				id, _ := c.TryEnqueue(ctx, target)
				return c.Wait(ctx, id)
			},
			"Future.Wait": func(ctx context.Context, c coordinator) (int, error) {
				return core.Must(c.Submit(ctx, target)).Wait(ctx)
			},
		} {
			for _, own := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, own %t", name, how, own), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						var c coordinator
						end, telling := newGate(), newGate()
						c = core.Must(core.NewResultCoordinator(func(ctx context.Context, item int) (int, error) {
							switch item {
							case waiter:
								return wait(ctx, c)
							case target:
								<-end.opened
							}
							return 10 * item, nil
						}, core.Options{MaxConcurrency: 1, MaxTracked: out.tracked, OnDone: func(s core.Snapshot) {
							if s.Item == target {
								if out.inside != nil {
									out.inside(c, s.ID)
								}
								<-telling.opened
							}
						}}))
						var result int
						answer := call(t, func(ctx context.Context) (err error) {
							if own {
								result, err = c.Do(ctx, waiter)
							} else {
								result, err = wait(ctx, c)
							}
							return err
						})
						end.open()
						synctest.Wait()
						if out.leave != nil {
							out.leave(t, c)
							synctest.Wait()
						}
						if s := c.Stats(); s.Running+s.Pending > 0 || !own && result != 0 {
							t.Errorf("got %v and result %d, want nothing to run, and no result before OnDone has returned", s, result)
						}
						telling.open()
						err := answer()
						if own && out.err != nil {
							checkError(t, how, err, out.err)
						} else if err != nil || result != 10*target {
							t.Errorf("%s: got %d and error %v, want %d", how, result, err, 10*target)
						}
						c.Close()
					})
				})
			}
		}
	}
}

// A body that begins to wait while OnDone is told gives up its slot as well, and Explain says what it waits for.
func TestWaitBeginsWhileOnDoneIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		telling := newGate()
		c := core.Must(core.NewResultCoordinator(func(ctx context.Context, a answer) (string, error) { return a(ctx) },
			core.Options{Name: "orders", MaxConcurrency: 1, MaxTracked: -1, OnDone: func(s core.Snapshot) {
				if s.Key == "" && !telling.isOpen() {
					<-telling.opened
				}
			}}))
		f := core.Must(c.Submit(t.Context(), answering("told")))
		synctest.Wait()
		waits := core.Must(c.Submit(t.Context(), f.Wait))
		checkWaits(t, c, 0, 1, 0)
		x, _ := c.Explain(waits.ID())
		checkEqual(t, "explanation", x.String(), fmt.Sprintf(`operation %d is suspended: its body waits for operation %d of "orders"`, waits.ID(), f.ID()))
		telling.open()
		got, err := waits.Wait(t.Context())
		checkResult(t, "Wait", got, err, "told", nil)
	})
}

// What the end of an operation lets start does not wait for a slow OnDone: neither here nor on a sink it forwards to.
func TestSlowOnDoneDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow, far := newGate(), core.NewSink(core.SinkOptions{})
		c := bodies(t, core.Options{MaxConcurrency: 2, DeferOn: "busy", OnDone: func(core.Snapshot) { <-slow.opened }})
		defer c.Sink().Forward(far, "busy")()
		other := bodies(t, core.Options{Sink: far, DeferOn: "busy"})
		hold := newGate()
		enqueue(t, c, func(ctx context.Context) error {
			core.OperationFrom(ctx).Hold("busy", 0)
			<-hold.opened
			return nil
		})
		synctest.Wait()
		ran := 0
		for range 2 { // the goroutine that runs OnDone has taken one of them
			enqueue(t, c, func(context.Context) error { ran++; return nil })
		}
		enqueue(t, other, quick)
		hold.open()
		synctest.Wait()
		checkEqual(t, "run while OnDone runs", ran, 1)
		checkEqual(t, "run on the other sink", other.Stats().Succeeded, 1)
		slow.open()
		closeDown(t, c)
		closeDown(t, other)
	})
}

// A callback that ends its goroutine ends no other callback.
func TestCallbacksThatEndTheirGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		told := map[string]int{}
		exits := func(name string) { told[name]++; runtime.Goexit() }
		c := bodies(t, core.Options{MaxConcurrency: 1, OnDone: func(core.Snapshot) { exits("done") }, OnRetract: func(core.Retraction) { exits("retracted") }})
		for _, name := range []string{"first", "second"} {
			c.OnFinalized(func(core.Snapshot) { exits("final, " + name) })
		}
		c.Sink().SubscribeRetracted("*", func(core.Retraction) { exits("retracted on the sink") })
		defer c.Sink().Monitor("h.*", 0).OnCount(2, 1, func(bool) { exits("count") })()
		enqueue(t, c, func(ctx context.Context) error {
			o := core.OperationFrom(ctx)
			for i := range 3 {
				var holding sync.WaitGroup
				holding.Go(func() { o.Hold(fmt.Sprint("h.", i), 0) })
				holding.Wait()
			}
			return untilCancelled(ctx)
		})
		synctest.Wait()
		for range 3 {
			enqueue(t, c, quick)
		}
		go c.Close()
		synctest.Wait()
		for name, want := range map[string]int{
			"done": 4, "final, first": 4, "final, second": 4, "retracted": 3, "retracted on the sink": 3, "count": 2,
		} {
			checkEqual(t, name, told[name], want)
		}
		checkError(t, "Close", c.Close(), nil)
	})
}
