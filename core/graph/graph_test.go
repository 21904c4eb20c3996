package graph_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/graph"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("failed on purpose")

// job is an item that is its own work.
type job func(ctx context.Context) error

func do(ctx context.Context, j job) error { return j(ctx) }

func quick(context.Context) error { return nil }

func fail(context.Context) error { return errOnPurpose }

func takes(d time.Duration) job {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func add[T any](t testing.TB, g *graph.Graph[T], name string, item T, deps ...string) {
	t.Helper()
	if err := g.Add(name, item, deps...); err != nil {
		t.Fatal(err)
	}
}

func checkStatuses(t testing.TB, r graph.Report, want string) {
	t.Helper()
	var got []string
	for _, n := range r.Nodes {
		got = append(got, n.Name+" "+n.Status.String())
	}
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("statuses\n got: %s\nwant: %s", text, want)
	}
}

func checkError(t testing.TB, got, want error) {
	t.Helper()
	coretest.Check(t, errors.Is(got, want), "got error %v, want %v", got, want)
}

func checkEqual[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	coretest.Check(t, got == want, "%s: got %v, want %v", what, got, want)
}

// Fault avoided: dependents of a failed node are never started, without a report.
func TestDependentsOfFailedAreSkippedAndSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, "node.*")
		g := graph.New[job]()
		add(t, g, "a", quick)
		add(t, g, "b", fail, "a")
		add(t, g, "c", quick, "b")
		add(t, g, "d", quick, "c", "a") // over two steps
		add(t, g, "e", quick, "a")      // does not depend on b
		r, err := g.Run(t.Context(), do, core.Options{MaxConcurrency: 1, Sink: sink})
		checkError(t, err, errOnPurpose)
		checkEqual(t, "error", err.Error(), `graph: node "b": failed on purpose`)
		checkStatuses(t, r, "a succeeded, b failed, c skipped, d skipped, e succeeded")
		for _, n := range r.Nodes {
			skipped := n.Status == graph.StatusSkipped
			if skipped != (n.FailedDependency == "b") || skipped != n.Started.IsZero() || skipped != n.Finished.IsZero() {
				t.Errorf("got %+v, want a skipped node to blame b and to have no times, and no other", n)
			}
			checkEqual(t, "has an error", n.Err != nil, n.Name == "b")
		}
		raised := facts.ExpectExactly(graph.SignalStarted, graph.SignalCompleted, graph.SignalStarted, graph.Failures.Name(),
			graph.Skips.Name(), graph.Skips.Name(), graph.SignalStarted, graph.SignalCompleted)
		var keys string
		for _, s := range raised {
			keys += s.Key
		}
		checkEqual(t, "keys", keys, "aabbcdee")
		checkEqual(t, "payload of the failure", raised[3].Payload(), any(errOnPurpose))
		checkEqual(t, "payload of the skip", raised[5].Payload(), any("b"))
	})
}

// Fault avoided: cancellation while nodes wait for a slot looks like success.
func TestCancelledRunSaysWhatWasLeftUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, "node.*")
		g := graph.New[job]()
		add(t, g, "done", quick)
		add(t, g, "running", takes(time.Hour))
		add(t, g, "stubborn", func(context.Context) error { time.Sleep(time.Minute); return nil })
		add(t, g, "unruly", func(ctx context.Context) error { <-ctx.Done(); panic("on the way out") })
		add(t, g, "waits for a slot", quick)
		add(t, g, "waits for another", quick, "running")
		add(t, g, "skipped", quick, "unruly")
		patience := errors.New("out of patience")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, patience)
		defer cancel()
		begun := time.Now()
		r, err := g.Run(ctx, do, core.Options{MaxConcurrency: 3, Sink: sink})
		checkEqual(t, "took", time.Since(begun), time.Minute)
		checkError(t, err, patience)
		if _, ok := errors.AsType[*core.PanicError](err); !ok {
			t.Errorf("got %v, want it to contain the panic as well", err)
		}
		checkStatuses(t, r, "done succeeded, running cancelled, stubborn succeeded, unruly failed, waits for a slot cancelled, waits for another cancelled, skipped skipped")
		for _, name := range []string{"running", "waits for a slot", "waits for another"} {
			n, _ := r.Node(name)
			checkError(t, n.Err, patience)
			checkEqual(t, name+" has started", !n.Started.IsZero(), name == "running")
		}
		count := map[string]int{}
		for _, s := range facts.Expect(graph.SignalStarted, "*", "*", "*", "*", "*", "*", "*", "*") {
			count[s.Name]++
		}
		checkEqual(t, "started", count[graph.SignalStarted], 4)
		checkEqual(t, "done", count[graph.SignalCompleted], 2)
		checkEqual(t, "cancelled", count[graph.SignalCancelled], 1)
		checkEqual(t, "failed", count[graph.Failures.Name()], 1)
		checkEqual(t, "skipped", count[graph.Skips.Name()], 1)
		facts.None()

		for range 100 { // from the beginning
			r, err = g.Run(ctx, do, core.Options{Sink: sink})
			checkError(t, err, patience)
			checkStatuses(t, r, "done cancelled, running cancelled, stubborn cancelled, unruly cancelled, waits for a slot cancelled, waits for another cancelled, skipped cancelled")
		}
		facts.None()
	})
}

// At any moment of the cancellation, each node has succeeded or is cancelled.
func TestCancelledAtAnyMoment(t *testing.T) {
	for at := 0; at < 100; at += 100 / long.Often(100, 25) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			g := graph.New[int]()
			for i := range 100 {
				add(t, g, strconv.Itoa(i), i)
			}
			var ran atomic.Int64
			r, err := g.Run(ctx, func(ctx context.Context, i int) error {
				ran.Add(1)
				if i == at {
					cancel()
				}
				return nil
			}, core.Options{MaxConcurrency: 8})
			var succeeded int64
			for _, n := range r.Nodes {
				switch n.Status {
				case graph.StatusSucceeded:
					succeeded++
				case graph.StatusCancelled:
					checkError(t, n.Err, context.Canceled)
					checkError(t, err, context.Canceled)
				default:
					t.Errorf("got %+v", n)
				}
			}
			checkEqual(t, "succeeded", succeeded, ran.Load())
			checkEqual(t, "an error", err != nil, succeeded < 100) // an end of ctx after the run does not make success a failure
		})
	}
}

// Fault avoided: deep chains overflow the stack, and each completion looks at every
// node.
func TestDeepGraphs(t *testing.T) {
	n := long.Often(100_000, 3_000)
	name := strconv.Itoa
	t.Run("chain", func(t *testing.T) {
		g := graph.New[int]()
		for i := range n {
			add(t, g, name(i), i, name(i+1))
		}
		add(t, g, name(n), n)
		next := n // nodes run from the end, one at a time
		_, err := g.Run(t.Context(), func(_ context.Context, i int) error {
			coretest.Check(t, i == next, "node %d ran when it was the turn of %d", i, next)
			next--
			return nil
		}, core.Options{})
		checkError(t, err, nil)
		checkEqual(t, "nodes not run", next, -1)

		r, err := g.Run(t.Context(), func(context.Context, int) error { return errOnPurpose }, core.Options{})
		checkError(t, err, errOnPurpose)
		checkEqual(t, "status", r.Nodes[0].Status, graph.StatusSkipped)
		checkEqual(t, "blames", r.Nodes[0].FailedDependency, name(n))
	})
	t.Run("cycle", func(t *testing.T) {
		g := graph.New[int]()
		for i := range n {
			add(t, g, name(i), i, name((i+1)%n))
		}
		_, err := g.Run(t.Context(), func(context.Context, int) error { return nil }, core.Options{})
		checkEqual(t, "nodes in the error", strings.Count(err.Error(), "->"), n)
	})
}

// Fault avoided: a second run runs the roots again but not their dependents, and
// adding during a run is undefined.
func TestRunsAreIndependentAndAddIsForLaterOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		g := graph.New[job]()
		add(t, g, "a", func(context.Context) error {
			ran.Add(1)
			time.Sleep(time.Second)
			name := strconv.Itoa(int(ran.Load()))
			return g.Add(name, takes(time.Second), "b")
		})
		add(t, g, "b", func(context.Context) error { ran.Add(1); return nil }, "a")
		for i := range 3 {
			r, err := g.Run(t.Context(), do, core.Options{})
			checkError(t, err, nil)
			checkEqual(t, "ran", ran.Load(), int64(2*(i+1)))
			checkEqual(t, "reported", len(r.Nodes), 2+i)
			if _, ok := r.Node("4"); ok {
				t.Error("the report knows a node that was not added")
			}
		}
	})
}

func TestGraphIsCheckedBeforeAnythingRuns(t *testing.T) {
	for name, c := range map[string]struct {
		edges string // a:b is a, depending on b
		want  string
	}{
		"unknown":  {"a a:x", ""},
		"self":     {"ok a:a", "graph: dependencies form a cycle: a -> a"},
		"two":      {"a:b b:a", "graph: dependencies form a cycle: a -> b -> a"},
		"behind":   {"ok x:y y:a a:ok,b b:ok,c c:a", "graph: dependencies form a cycle: a -> b -> c -> a"},
		"unknowns": {"a:x b:a,y c:a", "graph: node \"a\" depends on \"x\", which was not added\ngraph: node \"b\" depends on \"y\", which was not added"},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph.New[int]()
			var adding error
			for edge := range strings.SplitSeq(c.edges, " ") {
				name, deps, has := strings.Cut(edge, ":")
				var list []string
				if has {
					list = strings.Split(deps, ",")
				}
				adding = errors.Join(adding, g.Add(name, 0, list...))
			}
			if c.want == "" {
				coretest.Check(t, fmt.Sprint(adding) == `graph: node "a" has been added already`, "got %v, want an error that names the duplicate", adding)
				return
			}
			checkError(t, adding, nil)
			r, err := g.Run(t.Context(), func(context.Context, int) error {
				t.Error("something ran")
				return nil
			}, core.Options{})
			coretest.Check(t, fmt.Sprint(err) == c.want, "got error %v, want %s", err, c.want)
			checkEqual(t, "reported", len(r.Nodes), 0)
		})
	}
	if err := graph.New[int]().Add("", 0); err == nil {
		t.Error("a node without a name was added")
	}
}

func TestStopOnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := graph.New[job]()
		add(t, g, "a", func(context.Context) error { time.Sleep(time.Second); return errOnPurpose })
		add(t, g, "b", takes(time.Hour))
		add(t, g, "c", quick)
		add(t, g, "d", quick, "a")
		begun := time.Now()
		r, err := g.Run(t.Context(), do, core.Options{MaxConcurrency: 2, StopOnError: true})
		checkEqual(t, "took", time.Since(begun), time.Second)
		checkEqual(t, "error", err.Error(), `graph: node "a": failed on purpose`)
		checkStatuses(t, r, "a failed, b cancelled, c cancelled, d skipped")
	})
}

func TestOptions(t *testing.T) {
	g := graph.New[job]()
	r, err := g.Run(t.Context(), do, core.Options{})
	checkError(t, err, nil)
	checkEqual(t, "nodes of an empty graph", len(r.Nodes), 0)
	add(t, g, "a", quick)
	r, err = g.Run(t.Context(), do, core.Options{MaxConcurrency: -1})
	coretest.Check(t, strings.Contains(fmt.Sprint(err), "MaxConcurrency"), "got %v, want an error about MaxConcurrency", err)
	checkEqual(t, "reported", len(r.Nodes), 0)
	defer func() {
		if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "graph: ") {
			t.Errorf("Run without work: got panic %q, want one of this package", p)
		}
	}()
	_, _ = g.Run(t.Context(), nil, core.Options{})
}

// If the options keep nodes from starting, these nodes have failed, and nothing waits for
// them.
func TestGates(t *testing.T) {
	for want, opts := range map[string]core.Options{
		`because of signal "maintenance"`: {CancelOn: "maintenance"},
		"is closed":                       {DrainOn: "maintenance"},
	} {
		opts.Sink = signals.NewSink(signals.SinkOptions{})
		g := graph.New[job]()
		add(t, g, "a", func(context.Context) error { opts.Sink.Raise("maintenance"); return nil })
		add(t, g, "b", quick, "a")
		add(t, g, "c", quick, "b")
		r, err := g.Run(t.Context(), do, opts)
		checkStatuses(t, r, "a succeeded, b failed, c skipped")
		checkEqual(t, fmt.Sprint(err), strings.Contains(fmt.Sprint(err), want), true)
	}
}

// Work finds the name of its node in the operation, and its signals have that name as key.
func TestOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, "loaded")
		g := graph.New[job]()
		add(t, g, "users", func(ctx context.Context) error { core.OperationFrom(ctx).Raise("loaded"); return nil })
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		_, err := g.Run(ctx, func(ctx context.Context, j job) error {
			checkEqual(t, "value of the context", ctx.Value(key{}), any("value"))
			return j(ctx)
		}, core.Options{Sink: sink})
		checkError(t, err, nil)
		s := facts.ExpectExactly("loaded")[0]
		checkEqual(t, "key", s.Key, "users")
		checkEqual(t, "source", s.Source, "graph")
		checkEqual(t, "still there", sink.Has("loaded"), true)
	})
}

// A handler of a node's last signal has run before dependents start.
func TestSignalsPrecedeDependents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		var handled atomic.Bool
		defer sink.Subscribe(graph.SignalCompleted, func(s signals.Signal) {
			if s.Key == "a" {
				time.Sleep(time.Minute)
				handled.Store(true)
			}
		})()
		g := graph.New[job]()
		add(t, g, "a", quick)
		add(t, g, "b", func(context.Context) error { checkEqual(t, "handled", handled.Load(), true); return nil }, "a")
		add(t, g, "c", func(context.Context) error { checkEqual(t, "handled", handled.Load(), false); return nil })
		_, err := g.Run(t.Context(), do, core.Options{Sink: sink, MaxConcurrency: 2})
		checkError(t, err, nil)
	})
}

// Random graphs are compared with a simple model.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(long.Often(200, 30)) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			n, limit := 1+random.IntN(60), 1+random.IntN(8)
			if seed%3 == 0 {
				limit = n // nothing waits for a slot
			}
			deps := make([][]int, n)
			fails := make([]bool, n)
			lasts := make([]time.Duration, n)
			name := make([]string, n)
			for i, place := range random.Perm(n) {
				name[i] = strconv.Itoa(place)
				fails[i] = random.IntN(12) == 0
				lasts[i] = time.Duration(random.IntN(5)) * time.Second
				for range random.IntN(4) {
					if i > 0 {
						deps[i] = append(deps[i], random.IntN(i))
					}
				}
			}
			g := graph.New[int]()
			sink := signals.NewSink(signals.SinkOptions{})
			for _, i := range random.Perm(n) {
				var names []string
				for _, d := range deps[i] {
					names = append(names, name[d])
				}
				add(t, g, name[i], i, names...)
				clear(names) // the graph has a copy
			}
			var running, most atomic.Int64
			ran := make([]atomic.Int64, n)
			begun := time.Now()
			r, err := g.Run(t.Context(), func(_ context.Context, i int) error {
				ran[i].Add(1)
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				time.Sleep(lasts[i])
				if fails[i] {
					return errOnPurpose
				}
				return nil
			}, core.Options{MaxConcurrency: map[bool]int{true: math.MaxInt, false: limit}[limit == n], Sink: sink})

			coretest.Check(t, int(most.Load()) <= limit, "%d ran at once, want at most %d", most.Load(), limit)
			want := make([]graph.Status, n)
			failed, skipped := false, 0
			for i := range n {
				want[i] = graph.StatusSucceeded
				if fails[i] {
					want[i] = graph.StatusFailed
				}
				earliest := begun
				for _, d := range deps[i] {
					if want[d] != graph.StatusSucceeded {
						want[i] = graph.StatusSkipped
					}
					on, _ := r.Node(name[d])
					if on.Finished.After(earliest) {
						earliest = on.Finished
					}
				}
				got, _ := r.Node(name[i])
				checkEqual(t, "status of "+name[i], got.Status, want[i])
				if want[i] == graph.StatusSkipped {
					skipped++
					checkEqual(t, "runs of "+name[i], ran[i].Load(), 0)
					blamed, _ := r.Node(got.FailedDependency)
					checkEqual(t, "status of whom it blames", blamed.Status, graph.StatusFailed)
					continue
				}
				failed = failed || fails[i]
				checkEqual(t, "runs of "+name[i], ran[i].Load(), 1)
				checkEqual(t, "duration of "+name[i], got.Finished.Sub(got.Started), lasts[i])
				if wait := got.Started.Sub(earliest); wait < 0 || limit == n && wait != 0 {
					t.Errorf("%s started %v after the last of its dependencies", name[i], wait)
				}
			}
			checkEqual(t, "an error", err != nil, failed)
			checkEqual(t, "signals of skipped ones", sink.Count(graph.Skips.Name()), skipped)
			checkEqual(t, "reported", len(r.Nodes), n)
		})
	}
}

func TestStatusText(t *testing.T) {
	text, err := graph.StatusSkipped.MarshalText()
	checkError(t, err, nil)
	checkEqual(t, "text", string(text), "skipped")
	checkEqual(t, "unknown", graph.Status(9).String(), "Status(9)")
	checkEqual(t, "zero", graph.Status(0).String(), "Status(0)")
}
