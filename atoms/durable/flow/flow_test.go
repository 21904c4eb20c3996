package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow/flowtest"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errNo = errors.New("no")

// A step that was done does not run again, whatever happens to the rest of the body. Attempts count from the last step.
func TestStepsRunOnce(t *testing.T) {
	in(t, func(w *world) {
		failed := map[string]int{}
		q, _ := w.process(func(ctx context.Context, item string) error {
			for n := range 20 {
				name := fmt.Sprint("s", n)
				got, err := flow.Do(ctx, flow.Step[string]{Name: name, Do: func(context.Context) (string, error) {
					if failed[name]++; failed[name] < 3 {
						return "", errNo
					}
					return "r" + name, nil
				}})
				if err != nil {
					return err
				}
				w.equal("result", got, "r"+name)
			}
			return nil
		}, durable.Options{MaxAttempts: 3, Backoff: time.Second})
		id := w.enqueue(q, "a")
		w.settle(10 * time.Minute)
		w.equal("state", w.state(q, id), durable.Done)
		for name, n := range failed {
			w.equal("attempts of "+name, n, 3)
		}
		j, err := q.History(w.Context(), id)
		w.ok(err)
		w.equal("all steps are recorded", len(j.Steps), 20)
		if x := w.explain(q, id).String(); !strings.HasSuffix(x, "; done: 10 more, s10, s11, s12, s13, s14, s15, s16, s17, s18, s19") {
			w.Error(x)
		}
	})
}

// A name that is used twice in one run is a permanent error that names both places.
func TestNamesAreUsedOnce(t *testing.T) {
	in(t, func(w *world) {
		for what, twice := range map[string]body{
			"do": func(ctx context.Context, _ string) error {
				_, err1 := w.plain(ctx, "x")
				_, err2 := flow.Do(ctx, flow.Step[int]{Name: "x", Do: func(context.Context) (int, error) { return 0, nil }})
				return errors.Join(err1, err2)
			},
			"await": func(ctx context.Context, _ string) error {
				_, err1 := flow.Do(ctx, flow.Step[int]{Name: "x", Do: func(context.Context) (int, error) { return 0, nil }})
				return errors.Join(err1, flow.Sleep(ctx, "x", 1))
			},
			"each": func(ctx context.Context, _ string) error {
				fn := func(_ context.Context, n int) (int, error) { return n, nil }
				_, err1 := flow.Each(ctx, "x", []int{1}, 1, fn)
				_, err2 := flow.Each(ctx, "x", []int{1}, 1, fn)
				return errors.Join(err1, err2)
			},
		} {
			q, stop := w.process(twice, durable.Options{})
			id := w.enqueue(q, what)
			w.settle(time.Second)
			x := w.explain(q, id)
			w.equal(what, x.Item.State, durable.Dead)
			if text := x.Item.Err; strings.Count(text, "_test.go:") != 2 || !strings.Contains(text, "used twice") {
				w.Errorf("%s: %s", what, text)
			}
			stop()
		}
	})
}

// What was done is undone backwards: with its result, and without it where it is not known whether it took effect.
func TestCompensation(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		opts durable.Options
		act  func(w *world, q *durable.Queue[string], id durable.ItemID)
		end  durable.State
		text string
	}{
		"permanent":  {err: durable.Permanent(errNo), end: durable.Dead, text: "no"},
		"attempts":   {err: errNo, opts: durable.Options{MaxAttempts: 1}, end: durable.Dead, text: "no"},
		"halted":     {err: durable.Permanent(errNo), opts: durable.Options{HaltOnDead: true}, end: durable.Halted, text: "no"},
		"by itself":  {err: durable.Cancel(errNo), end: durable.Cancelled, text: "no"},
		"cancelled":  {err: errNo, opts: durable.Options{Backoff: time.Hour}, act: func(w *world, q *durable.Queue[string], id durable.ItemID) { w.cancel(q, id) }, end: durable.Cancelled, text: "left"},
		"in a sleep": {err: nil, act: func(w *world, q *durable.Queue[string], id durable.ItemID) { w.cancel(q, id) }, end: durable.Cancelled, text: "left"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				q, _ := w.process(func(ctx context.Context, _ string) error {
					if _, err := w.step(ctx, "one"); err != nil {
						return err
					}
					if _, err := w.plain(ctx, "two"); err != nil {
						return err
					}
					if _, err := w.step(ctx, "three"); err != nil {
						return err
					}
					if c.err == nil {
						return flow.Sleep(ctx, "nap", time.Hour)
					}
					_, err := w.step(ctx, "four", c.err)
					return err
				}, c.opts)
				id := w.enqueue(q, "a")
				w.settle(time.Second)
				if c.act != nil {
					c.act(w, q, id)
					w.settle(time.Second)
				}
				undone := "undo four 0 false undo three 5 true undo one 3 true]"
				if c.err == nil {
					undone = "undo three 5 true undo one 3 true]"
				}
				if log := w.happened(); !strings.HasPrefix(log, "[one two three") || !strings.HasSuffix(log, undone) {
					w.Error(log)
				}
				x := w.explain(q, id)
				w.equal("end", []any{x.Item.State, x.Item.Err}, []any{c.end, c.text})
				if n, err := q.Again(w.Context(), id); n != 1 || err != nil { // again from the start
					w.Fatal(n, err)
				}
				w.settle(time.Second)
				if log := w.happened(); !strings.HasPrefix(log, "[one two three") {
					w.Error(log)
				}
			})
		})
	}
}

func (w *world) cancel(q *durable.Queue[string], id durable.ItemID) {
	w.Helper()
	ok, err := q.Cancel(w.Context(), id, "left")
	w.ok(err)
	w.equal("cancelled", ok, true)
}

// A running flow that is cancelled is undone, with a context that is not cancelled. A second Cancel changes nothing in that.
func TestCancelWhileItRuns(t *testing.T) {
	in(t, func(w *world) {
		q, _ := w.process(func(ctx context.Context, _ string) error {
			if _, err := flow.Do(ctx, flow.Step[int]{Name: "a", Do: func(context.Context) (int, error) { return 1, nil }, Compensate: func(ctx context.Context, _ int, known bool) error {
				time.Sleep(10 * time.Second)
				w.note("undone %v %v", known, ctx.Err())
				return nil
			}}); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}, durable.Options{})
		id := w.enqueue(q, "a")
		w.settle(time.Second)
		w.cancel(q, id)
		w.settle(4 * time.Second)
		x := w.explain(q, id)
		w.equal("it is undone", x.Flow.Undo, durable.Cancelled)
		if !strings.HasSuffix(x.String(), "is undone (left), left: a") {
			w.Error(x)
		}
		w.cancel(q, id)
		w.settle(time.Minute)
		w.equal("log", w.happened(), "[undone true <nil>]")
		w.equal("state", w.state(q, id), durable.Cancelled)
	})
}

// A Compensate that fails has 8 attempts. Then the flow is half undone: its item is halted, also without a key, and Again goes on with undoing.
func TestHalfUndone(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		panics   any
		attempts int
		exits    bool
	}{"error": {err: errNo, attempts: 8}, "permanent": {err: durable.Permanent(errNo), attempts: 1}, "panic": {panics: "no", attempts: 8}, "Goexit": {exits: true, attempts: 8}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				var broken atomic.Bool
				broken.Store(true)
				tries := 0
				q, _ := w.process(func(ctx context.Context, _ string) error {
					if _, err := w.step(ctx, "a"); err != nil {
						return err
					}
					if _, err := flow.Do(ctx, flow.Step[int]{Name: "b", Do: func(context.Context) (int, error) { return 1, nil }, Compensate: func(context.Context, int, bool) error {
						if tries++; broken.Load() {
							if c.panics != nil {
								panic(c.panics)
							}
							if c.exits {
								runtime.Goexit()
							}
							return c.err
						}
						w.note("undo b")
						return nil
					}}); err != nil {
						return err
					}
					if _, err := w.step(ctx, "c"); err != nil {
						return err
					}
					return durable.Permanent(errors.New("out of stock"))
				}, durable.Options{MaxAttempts: 1, Backoff: time.Second, Poll: time.Minute, Lease: time.Hour})
				id := w.enqueue(q, "")
				w.settle(time.Hour)
				x := w.explain(q, id)
				w.equal("halted", []any{x.Item.State, tries}, []any{durable.Halted, c.attempts})
				if !strings.Contains(x.Item.Err, "half undone: step b: ") || !strings.HasSuffix(x.Item.Err, "; not undone: b, a") {
					w.Error(x.Item.Err)
				}
				w.equal("log", w.happened(), "[a c undo c 1 true]")
				w.settle(100 * time.Hour)
				w.equal("kept", w.state(q, id), durable.Halted)
				broken.Store(false)
				n, err := q.AgainAll(w.Context(), durable.Query{Dead: true})
				w.equal("again", []any{n.Changed, err}, []any{1, nil})
				w.settle(time.Minute)
				w.equal("log", w.happened(), "[undo b undo a 1 true]")
				x = w.explain(q, id)
				w.equal("dead", []any{x.Item.State, x.Item.Err}, []any{durable.Dead, "out of stock"})
			})
		})
	}
}

// Steps whose Compensate is not seen, because the body does not come there any more, or whose item or data cannot be decoded, are named.
func TestUndoneByOtherCode(t *testing.T) {
	for name, change := range map[string]func(w *world, opts *durable.Options) body{
		"step is gone": func(w *world, _ *durable.Options) body {
			return func(ctx context.Context, _ string) error {
				_, err := w.step(ctx, "a")
				return err
			}
		},
		"body panics": func(w *world, _ *durable.Options) body {
			return func(ctx context.Context, _ string) error {
				if _, err := w.step(ctx, "a"); err != nil {
					return err
				}
				panic("changed")
			}
		},
		"type of result": func(w *world, _ *durable.Options) body {
			return func(ctx context.Context, _ string) error {
				if _, err := w.step(ctx, "a"); err != nil {
					return err
				}
				_, err := flow.Do(ctx, flow.Step[[]string]{Name: "b", Do: func(context.Context) ([]string, error) { return nil, errNo }, Compensate: func(context.Context, []string, bool) error { return nil }})
				return err
			}
		},
		"item": func(w *world, opts *durable.Options) body {
			opts.Decode = func([]byte, any) error { panic("not mine") }
			return func(context.Context, string) error { return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				q, stop := w.process(func(ctx context.Context, _ string) error {
					if _, err := w.step(ctx, "a"); err != nil {
						return err
					}
					if _, err := w.step(ctx, "b"); err != nil {
						return err
					}
					return flow.Sleep(ctx, "nap", time.Hour)
				}, durable.Options{})
				id := w.enqueue(q, "k")
				w.settle(time.Second)
				stop()
				w.cancel(q, id)
				opts := durable.Options{}
				work := change(w, &opts)
				q, _ = w.process(work, opts)
				w.settle(time.Minute)
				x := w.explain(q, id)
				w.equal("state", x.Item.State, durable.Halted)
				if !strings.Contains(x.Item.Err, "half undone: step b: ") || !strings.HasSuffix(x.Item.Err, "not undone: b, a") {
					w.Error(x.Item.Err)
				}
			})
		})
	}
}

// A flow that waits is only a row: it takes the first signal that fits, or is late, and has no attempt.
func TestAwait(t *testing.T) {
	in(t, func(w *world) {
		q, _ := w.process(func(ctx context.Context, item string) error {
			said, err := flow.Await(ctx, "approval", "approval.given, approval.refused", 48*time.Hour)
			if err != nil {
				w.note("%v", err)
				return nil // swallowed
			}
			var by string
			w.note("%s %v", said.Name, errors.Join(said.Decode(&by)))
			w.note("%s", by)
			return nil
		}, durable.Options{MaxConcurrency: 1, Poll: time.Minute, Lease: time.Hour})
		id, late := w.enqueue(q, "a"), w.enqueue(q, "b")
		w.settle(3 * time.Hour)
		x := w.explain(q, id)
		w.equal("why", x.String(), "waits for approval.given or approval.refused since 2000-01-01T00:00:00Z until 2000-01-03T00:00:00Z; done: nothing")
		w.equal("nothing is held", []any{x.Item.Attempts, len(x.Attempts), q.Here().Stats().Running}, []any{0, 0, 0})
		w.ok(q.Signal(w.Context(), "a", "approval.given", "ada"))
		w.settle(time.Second)
		w.equal("state", w.state(q, id), durable.Done)
		w.settle(46 * time.Hour)
		w.equal("log", w.happened(), `[durable: the flow is parked, and its body begins again later durable: the flow is parked, and its body begins again later approval.given <nil> ada durable: step "approval": durable: no signal came before the deadline]`)
		w.equal("late", w.state(q, late), durable.Done)
	})
}

// A status page shows the steps of a flow in each of their states, without results.
func TestStepsOnAPage(t *testing.T) {
	in(t, func(w *world) {
		var broken atomic.Bool
		broken.Store(true)
		q, _ := w.process(func(ctx context.Context, _ string) error {
			if _, err := flow.Do(ctx, flow.Step[string]{Name: "reserve", Do: func(context.Context) (string, error) { time.Sleep(2 * time.Second); return "secret", nil }}); err != nil {
				return err
			}
			if _, err := flow.Await(ctx, "approval", "approval.*", time.Hour); err != nil {
				return err
			}
			for _, name := range []string{"charge", "ship"} {
				_, err := flow.Do(ctx, flow.Step[int]{Name: name, Do: func(context.Context) (int, error) {
					if name == "ship" {
						return 0, errors.New("no parcel")
					}
					return 1, nil
				}, Compensate: func(context.Context, int, bool) error {
					if name == "charge" && broken.Load() {
						return durable.Permanent(errors.New("bank is closed"))
					}
					return nil
				}})
				if err != nil {
					return err
				}
			}
			return nil
		}, durable.Options{MaxAttempts: 2, Backoff: time.Minute})
		began := time.Now()
		id := w.enqueue(q, "ada")
		page := func() (text []string) {
			d, ok, err := q.Inspect().Item(w.Context(), int64(id))
			w.ok(err)
			w.equal("found", ok, true)
			since := func(t time.Time) string {
				if t.IsZero() || t.Sub(began) > 10*time.Second { // the pause before another attempt is random
					return "-"
				}
				return fmt.Sprint(t.Sub(began).Round(time.Second))
			}
			for _, s := range d.Steps {
				text = append(text, strings.TrimSpace(fmt.Sprintf("%s %s %d %s-%s %s", s.Name, s.State, s.Attempts, since(s.Started), since(s.Ended), s.Signal)))
			}
			return text
		}
		w.settle(5 * time.Second)
		w.equal("parked", strings.Join(page(), "; "), "reserve done 1 0s-2s; approval waits 1 2s-- approval.*")
		w.ok(q.Signal(w.Context(), "ada", "approval.given", nil))
		w.settle(5 * time.Second)
		w.equal("tried again", strings.Join(page(), "; "), "reserve done 1 0s-2s; approval done 1 --5s approval.given; charge done 1 5s-5s; ship failed 1 5s--")
		w.settle(2 * time.Minute)
		w.equal("half undone", strings.Join(page(), "; "), "reserve done 1 0s-2s; approval done 1 --5s approval.given; charge half undone 1 5s-5s; ship undone 1 ---")
		broken.Store(false)
		_, err := q.AgainAll(w.Context(), durable.Query{Dead: true})
		w.ok(err)
		w.settle(time.Minute)
		w.equal("undone", strings.Join(page(), "; "), "reserve done 1 0s-2s; approval done 1 --5s approval.given; charge undone 1 ---; ship undone 1 ---")
	})
}

// After a call has parked the flow, each later call returns ErrParked, and the item is parked whatever the body returns.
func TestSwallowedParks(t *testing.T) {
	in(t, func(w *world) {
		for name, ends := range map[string]func() error{"nil": func() error { return nil }, "error": func() error { return durable.Permanent(errNo) }, "snooze": func() error { return durable.Snooze(1) },
			"panic": func() error { panic("no") }} {
			q, stop := w.process(func(ctx context.Context, _ string) error {
				if err := flow.Sleep(ctx, "nap", time.Hour); err == nil {
					w.note("end")
					return nil
				}
				_, err1 := w.step(ctx, "x")
				_, err2 := flow.Await(ctx, "y", "z", 1)
				_, err3 := flow.Each(ctx, "e", []int{1}, 1, func(context.Context, int) (int, error) { w.note("e"); return 1, nil })
				if !errors.Is(err1, flow.ErrParked) || !errors.Is(err2, flow.ErrParked) || !errors.Is(err3, flow.ErrParked) {
					w.Error(err1, err2, err3)
				}
				return ends()
			}, durable.Options{})
			id := w.enqueue(q, name)
			w.settle(time.Minute)
			w.equal(name, []any{w.state(q, id), w.explain(q, id).Item.Err}, []any{durable.Ready, ""})
			w.settle(time.Hour)
			w.equal(name, []any{w.state(q, id), w.happened()}, []any{durable.Done, "[end]"})
			stop()
		}
	})
}

// A result that cannot be kept is a permanent error after the effect, which is undone: it is not known whether it took effect.
func TestResultsThatCannotBeKept(t *testing.T) {
	for name, c := range map[string]struct {
		step any
		opts durable.Options
		text string
	}{
		"too large": {strings.Repeat("x", 100), durable.Options{MaxResult: 50}, "102 bytes, more than 50: Options.MaxResult"},
		"the flow":  {strings.Repeat("x", 100), durable.Options{MaxFlow: 100}, "103 bytes, more than 100: Options.MaxFlow"},
		"no JSON":   {func() {}, durable.Options{}, "has no JSON"},
		"panics":    {hostile{}, durable.Options{}, "has no JSON"},
		"steps":     {"", durable.Options{MaxSteps: 1}, "more than 1 steps: Options.MaxSteps"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				ran := 0
				q, _ := w.process(func(ctx context.Context, _ string) error {
					if _, err := w.step(ctx, "a"); err != nil {
						return err
					}
					_, err := flow.Do(ctx, flow.Step[any]{Name: "big", Do: func(context.Context) (any, error) { ran++; return c.step, nil }, Compensate: func(_ context.Context, _ any, known bool) error {
						w.note("undo big %v", known)
						return nil
					}})
					return err
				}, c.opts)
				id := w.enqueue(q, "a")
				w.settle(time.Hour)
				x := w.explain(q, id)
				if x.Item.State != durable.Dead || !strings.Contains(x.Item.Err, c.text) || !strings.Contains(x.Item.Err, "big") {
					w.Error(x)
				}
				want, runs := "[a undo big false undo a 1 true]", 1
				if name == "steps" {
					want, runs = "[a undo a 1 true]", 0
				}
				w.equal("log", []any{w.happened(), ran}, []any{want, runs})
			})
		})
	}
}

type hostile struct{}

func (hostile) MarshalJSON() ([]byte, error) { panic("no") }

// Steps beside each other are steps of their own. The elements must stay the same.
func TestEach(t *testing.T) {
	in(t, func(w *world) {
		elements, fails := []string{"x", "y", "z"}, true // under w.mu
		q, _ := w.process(func(ctx context.Context, item string) error {
			w.mu.Lock()
			some := slices.Clone(elements)
			w.mu.Unlock()
			got, err := flow.Each(ctx, "e", some, 2, func(_ context.Context, e string) (string, error) {
				w.note("%s", e)
				w.mu.Lock()
				defer w.mu.Unlock()
				if e == "y" && fails {
					return "", errNo
				}
				return e + e, nil
			})
			if err == nil {
				w.note("%v", got)
				err = flow.Sleep(ctx, "nap", time.Hour)
			}
			return err
		}, durable.Options{Backoff: time.Second})
		id := w.enqueue(q, "a")
		w.settle(100 * time.Millisecond)
		w.mu.Lock()
		fails = false
		w.mu.Unlock()
		w.settle(time.Minute)
		w.equal("not again what was done", strings.Count(w.happened(), "x"), 3) // x, and xx in the result
		w.mu.Lock()
		elements[1] = "other"
		w.mu.Unlock()
		w.settle(2 * time.Hour)
		x := w.explain(q, id)
		if x.Item.State != durable.Dead || !strings.Contains(x.Item.Err, `step "e/1": it was done for another element`) {
			w.Error(x)
		}
	})
}

// Steps of goroutines, in any order, and a retry that takes another branch: no step gets the value of another one.
func TestBranches(t *testing.T) {
	in(t, func(w *world) {
		attempt := 0
		q, _ := w.process(func(ctx context.Context, _ string) error {
			attempt++
			names := [][]string{{"a", "b"}, {"c", "b", "a"}}[(attempt-1)%2]
			got, err := flow.Each(ctx, fmt.Sprint("of ", attempt), names, 3, func(ctx context.Context, name string) (int, error) { return 1, nil })
			for _, name := range names {
				n, failed := w.plain(ctx, name)
				w.equal(name, n, map[bool]int{true: 1}[failed == nil])
				err = errors.Join(err, failed)
			}
			w.equal("each", len(got), len(names))
			if attempt == 1 {
				return errNo
			}
			return err
		}, durable.Options{})
		strays := 0
		q.Sink().Subscribe(durable.SignalStray, func(signals.Signal) { strays++ })
		id := w.enqueue(q, "k")
		w.settle(time.Minute)
		w.equal("log", []any{w.happened(), w.state(q, id), strays}, []any{"[a b c]", durable.Done, 1})
	})
}

// A flow is at each moment the work of programs of several versions: the newer one goes on where the older one was. The older one gives back what it
// does not know, and says so.
func TestVersions(t *testing.T) {
	in(t, func(w *world) {
		program := func(version int) (*durable.Queue[string], func()) {
			return w.process(func(ctx context.Context, _ string) error {
				if _, err := w.plain(ctx, "old"); err != nil {
					return err
				}
				if flow.Version(ctx) >= 2 {
					if _, err := w.plain(ctx, "new"); err != nil {
						return err
					}
				}
				w.note("v%d", flow.Version(ctx))
				return flow.Sleep(ctx, "nap", time.Hour)
			}, durable.Options{Version: version, Poll: time.Second})
		}
		q, stop := program(1)
		first := w.enqueue(q, "a")
		w.settle(time.Second)
		stop()
		q, stop = program(2)
		second := w.enqueue(q, "b")
		w.settle(2 * time.Hour)
		w.equal("both went on", []any{w.happened(), w.state(q, first), w.state(q, second)}, []any{"[old v1 old new v2 v1 v2]", durable.Done, durable.Done})
		third := w.enqueue(q, "c")
		w.settle(time.Second)
		stop()
		q, stop = program(1)
		said := 0
		q.Sink().Subscribe(durable.SignalUnserved, func(signals.Signal) { said++ })
		w.settle(time.Hour + 5*time.Second)
		x := w.explain(q, third)
		if x.Item.Attempts != 0 || said == 0 || !strings.Contains(x.String(), "has begun with version 2, and this process, ") || w.happened() != "[old new v2]" {
			w.Error(x, said)
		}
		stop()
		program(2)
		w.settle(time.Minute)
		w.equal("after the next deploy", w.state(q, third), durable.Done)
	})
}

// The steps with a class share its rate over all processes. A retry takes a token again, and the steps after it run without the class.
func TestClasses(t *testing.T) {
	in(t, func(w *world) {
		opts := durable.Options{Classes: []durable.Class{{Name: "stripe", Rate: core.Rate{PerSecond: 1, Burst: 1}}}, Backoff: time.Millisecond, Poll: 100 * time.Millisecond}
		began := time.Now()
		charges := map[string]int{}
		work := func(ctx context.Context, item string) error {
			if _, err := w.plain(ctx, "before"); err != nil {
				return err
			}
			_, err := flow.Do(ctx, flow.Step[int]{Name: "charge", Class: "stripe", Do: func(ctx context.Context) (int, error) {
				w.note("%s at %v", durable.ClaimFrom(ctx).Class, time.Since(began).Round(time.Second))
				if charges[item]++; charges[item] == 1 {
					return 0, errNo
				}
				return 1, nil
			}})
			if err != nil {
				return err
			}
			_, err = flow.Do(ctx, flow.Step[int]{Name: "after", Do: func(ctx context.Context) (int, error) {
				w.note("after %q", durable.ClaimFrom(ctx).Class)
				return 1, nil
			}})
			return err
		}
		q, _ := w.process(work, opts)
		w.process(work, opts)
		a, b := w.enqueue(q, "a"), w.enqueue(q, "b")
		w.settle(time.Minute)
		w.equal("states", []any{w.state(q, a), w.state(q, b)}, []any{durable.Done, durable.Done})
		log := w.happened()
		for n, want := range []int{4, 2, 1, 1, 1, 1} {
			text := []string{"stripe at", `after ""`, "at 0s", "at 1s", "at 2s", "at 3s"}[n]
			if got := strings.Count(log, text); got != want {
				w.Errorf("%s: %d of %d in %s", text, got, want, log)
			}
		}
		x := w.explain(q, a)
		w.equal("parks are no attempts", len(x.Attempts) <= 2, true)
		beside := func(ctx context.Context, _ string) error {
			_, err := flow.Each(ctx, "e", []int{1, 2}, 2, func(in context.Context, n int) (int, error) {
				if n == 1 {
					_, err := flow.Do(ctx, flow.Step[int]{Name: "alone", Class: "stripe", Do: func(context.Context) (int, error) { return 1, nil }})
					return 0, err
				}
				<-in.Done()
				return 0, in.Err()
			})
			return err
		}
		opts.Name = "beside"
		other, err := durable.New(w.store, func(item string) string { return item }, beside, opts)
		w.ok(err)
		ctx, stop := context.WithCancel(w.Context())
		ran := make(chan error)
		go func() { ran <- other.Run(ctx) }()
		id, err := other.Enqueue(w.Context(), "x")
		w.ok(err)
		w.settle(time.Minute)
		x, err = other.Explain(w.Context(), id)
		w.ok(err)
		if x.Item.State != durable.Dead || !strings.Contains(x.Item.Err, `step "alone"`) {
			w.Error(x)
		}
		stop()
		w.ok(<-ran)
		w.ok(other.Close())
	})
}

// A history is a test: steps answer from it, and what does not fit is named.
func TestReplay(t *testing.T) {
	in(t, func(w *world) {
		work := func(ctx context.Context, _ string) error {
			if _, err := w.step(ctx, "a"); err != nil {
				return err
			}
			if _, err := flow.Await(ctx, "said", "x", time.Hour); err != nil {
				return err
			}
			return flow.Sleep(ctx, "nap", time.Hour)
		}
		q, _ := w.process(work, durable.Options{})
		id := w.enqueue(q, "k")
		w.ok(q.Signal(w.Context(), "k", "x", map[string]int{"n": 1}))
		w.settle(time.Second)
		history, err := q.History(w.Context(), id)
		w.ok(err)
		w.happened()
		text, err := json.Marshal(history)
		w.ok(err)
		var same durable.Journal
		w.ok(json.Unmarshal(text, &same))
		replay := func(body func(ctx context.Context) error) (string, error) {
			r := &record{TB: w.T}
			err := flowtest.Replay(r, body, same)
			return strings.Join(r.errs, "; "), err
		}
		errs, err := replay(func(ctx context.Context) error { return work(ctx, "k") })
		w.equal("fits", []any{errs, errors.Is(err, flow.ErrParked), w.happened()}, []any{"", true, "[]"})
		errs, err = replay(func(ctx context.Context) error {
			if err := work(ctx, "k"); !errors.Is(err, flow.ErrParked) {
				return err
			}
			_, err := w.step(ctx, "later")
			return err
		})
		w.equal("after the end", []any{errs, errors.Is(err, flow.ErrParked)}, []any{"", true})
		steps := same.Steps
		same.Steps, same.Wait = steps[:1], nil // a flow that was tried again
		errs, err = replay(func(ctx context.Context) error { return work(ctx, "k") })
		w.equal("the history ends", []any{errs, errors.Is(err, flow.ErrParked), w.happened()}, []any{"", true, "[]"})
		errs, err = replay(func(ctx context.Context) error {
			if _, err := w.step(ctx, "a"); err != nil {
				return err
			}
			if _, err := w.plain(ctx, "next"); !errors.Is(err, flow.ErrParked) {
				return fmt.Errorf("next: %w", err)
			}
			return durable.Charge(ctx, 1, 1)
		})
		w.equal("a step beyond it", []any{errs, err, w.happened()}, []any{"", nil, "[]"})
		same.Steps = steps
		errs, _ = replay(func(ctx context.Context) error {
			_, err := w.step(ctx, "b")
			return err
		})
		w.equal("named", errs, `flowtest: the history has no step "b": the body would run it, or wait for it; flowtest: the body did not ask for step "a" of the history; flowtest: the body did not ask for step "said" of the history`)
	})
}

type record struct {
	testing.TB
	errs []string
}

func (r *record) Errorf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Sprintf(format, args...))
}

// Goexit in a worker is an error, and no result is missed.
func TestGoexitInEach(t *testing.T) {
	in(t, func(w *world) {
		var got []int
		var failed error
		q, _ := w.process(func(ctx context.Context, _ string) error {
			got, failed = flow.Each(ctx, "e", []int{1, 2}, 1, func(_ context.Context, n int) (int, error) {
				runtime.Goexit()
				return n, nil
			})
			return failed
		}, durable.Options{MaxAttempts: 1})
		id := w.enqueue(q, "")
		w.settle(time.Second)
		w.equal("dead", []any{w.state(q, id), got, failed != nil}, []any{durable.Dead, []int(nil), true})
	})
}

// While the store does not take the record of a step that is undone, no attempt counts.
func TestRecordFailsWhileUndoing(t *testing.T) {
	in(t, func(w *world) {
		m := &mortal{Store: w.store}
		w.store = m
		undone := 0
		q, _ := w.process(func(ctx context.Context, _ string) error {
			if _, err := flow.Do(ctx, flow.Step[int]{Name: "a", Do: func(context.Context) (int, error) { return 1, nil }, Compensate: func(context.Context, int, bool) error {
				undone++
				m.unwritten.Store(undone < 20)
				return nil
			}}); err != nil {
				return err
			}
			return durable.Permanent(errNo)
		}, durable.Options{Backoff: time.Second, MaxBackoff: time.Second})
		id := w.enqueue(q, "")
		w.settle(time.Hour)
		w.equal("undone", []any{w.state(q, id), undone}, []any{durable.Dead, 20})
	})
}

// A call outside of a body is an error.
func TestOutsideOfABody(t *testing.T) {
	ctx := context.Background()
	_, err1 := flow.Do(ctx, flow.Step[int]{Name: "x", Do: func(context.Context) (int, error) { return 1, nil }})
	_, err2 := flow.Await(ctx, "x", "y", 1)
	_, err3 := flow.Each(ctx, "x", []int{1}, 1, func(context.Context, int) (int, error) { return 1, nil })
	for _, err := range []error{err1, err2, err3, flow.Sleep(ctx, "x", 1)} {
		if err == nil || !strings.Contains(err.Error(), "called with its context") {
			t.Error(err)
		}
	}
	if flow.Version(ctx) != 0 {
		t.Error(flow.Version(ctx))
	}
}

// A result that cannot be decoded, because its type has changed or its method panics, is a permanent error that names the step. The effect does not run again.
func TestChangedResult(t *testing.T) {
	in(t, func(w *world) {
		program := func(second func(ctx context.Context) error) (*durable.Queue[string], func()) {
			return w.process(func(ctx context.Context, _ string) error {
				if err := second(ctx); err != nil {
					return err
				}
				return flow.Sleep(ctx, "nap", time.Minute)
			}, durable.Options{})
		}
		q, stop := program(func(ctx context.Context) error {
			_, err := w.plain(ctx, "charge")
			return err
		})
		ids := []durable.ItemID{w.enqueue(q, "a"), w.enqueue(q, "b")}
		w.settle(time.Second)
		stop()
		var n atomic.Int64 // both items run at once
		q, _ = program(func(ctx context.Context) error {
			if n.Add(1) == 1 {
				_, err := flow.Do(ctx, flow.Step[[]string]{Name: "charge", Do: func(context.Context) ([]string, error) { w.note("again"); return nil, nil }})
				return err
			}
			_, err := flow.Do(ctx, flow.Step[explosive]{Name: "charge", Do: func(context.Context) (explosive, error) { w.note("again"); return explosive{}, nil }})
			return err
		})
		w.settle(2 * time.Minute)
		for _, id := range ids {
			if x := w.explain(q, id); x.Item.State != durable.Dead || !strings.Contains(x.Item.Err, `what is kept of step "charge" cannot be decoded as `) {
				w.Error(x)
			}
		}
		w.equal("log", w.happened(), "[charge charge]")
	})
}

type explosive struct{}

func (*explosive) UnmarshalJSON([]byte) error { panic("no") }
