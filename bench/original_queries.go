package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/atoms/windowsize"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const (
	noBody    = "it measures the runtime, not the library"
	noMemory  = "it is a number of bytes, not a time; tests of core bound ours"
	handed    = "it counts what an end loses; here Drain loses nothing"
	byCounter = "a pattern that is asked for again becomes a counter"
)

// originalQueries look at signals and caches. An operation is one question.
var originalQueries = []Original{
	{"health check by query", 2000, queried(5000, "processing.failed:pri1:", func(s *signals.Sink) {
		for range s.Sense(signals.Query{Pattern: "processing.failed:pri1:*", Within: 10 * time.Second}) {
		}
	}), "5,000 signals are found", -1},
	{"spin", 100_000, nil, noBody, 0},
	{"names only", 500_000, nil, noBody, 0},
	{"sense exact, 1k window", 5000, queried(1000, "name.", func(s *signals.Sink) {
		for range s.Sense(signals.Query{Pattern: "name.50"}) {
		}
	}), "10 signals are found; ours keeps an index of names that are asked for", -1},
	{"detect present", 200_000, queried(1000, "name.", func(s *signals.Sink) { s.Has("name.50") }), "", 0},
	{"detect absent", 10_000, queried(1000, "name.", func(s *signals.Sink) { s.Has("name.absent") }), "ours keeps an index of names that are asked for", 0},
	{"count by prefix, all of 5k", 3000, queried(5000, "name.", func(s *signals.Sink) { s.Count("name.*") }), byCounter, 0},
	//ephemeral:ignore
	{"count by prefix, none of 5k", 3000, queried(5000, "name.", func(s *signals.Sink) { s.Count("other.*") }), byCounter, 0},
	{"idle coordinator, bytes", 0, nil, noMemory, 0},
	{"tracked operation, bytes", 0, nil, noMemory, 0},
	{"sink signal, bytes", 0, nil, noMemory, 0},
	{"typed signal raise, 1 listener", 500_000, raisingTyped, cancellable, -1},
	{"snapshot of 1,000", 3000, snapshots, "a value of ours does not change later", -1},
	{"lru hit", 300_000, hitting(1), "", 0},
	{"lru churn", 100_000, churning, "the original keeps all 10,000 entries in spite of its limit of 1,000, and so loads a tenth", -1},
	{"lru hit, 8 threads", 400_000, hitting(8), "", 0},
	{"limiter acquire, 8 threads", 800_000, acquiring(8), "a limiter of .NET gets its tokens from a timer; ours reads the clock", 0},
}

// queried asks a sink of so many signals, which have 100 names. The sink is made before each
// run, so that its signals are young.
func queried(capacity int, prefix string, ask func(s *signals.Sink)) func() Body {
	return func() Body {
		var s *signals.Sink
		return Body{Ready: func(int) {
			s = signals.NewSink(signals.SinkOptions{Capacity: capacity})
			raiseBuilt(prefix, 100)(s, capacity)
		}, Run: func(n int) {
			for range n {
				ask(s)
			}
		}}
	}
}

// resizing changes the size of a window by signals.
func resizing() Body {
	commands := [...]string{
		windowsize.CommandSizeSet + ":500",
		windowsize.CommandSizeIncrease + ":100",
		windowsize.CommandSizeDecrease + ":50",
	}
	s := signals.NewSink(signals.SinkOptions{})
	core.Must(windowsize.New(s, windowsize.Options{}))
	return Body{Run: func(n int) {
		for i := range n {
			s.Raise(commands[i%len(commands)])
		}
	}}
}

func acquiring(threads int) func() Body {
	return func() Body {
		l := core.Must(ratelimit.New(core.Rate{PerSecond: bucket.MaxRate, Burst: burstFor(false)}, ratelimit.Options{}))
		ctx := context.Background()
		return Body{Run: func(n int) {
			spread(threads, n, func(n int) {
				for range n {
					check(l.Wait(ctx))
				}
			})
		}}
	}
}

func raisingTyped() Body {
	type payload struct {
		id   int
		name string
	}
	s, kind := signals.NewSink(signals.SinkOptions{}), signals.NewKind[payload]("typed.signal")
	kind.Subscribe(s, func(signals.Signal, payload) {})
	return Body{Run: func(n int) {
		for i := range n {
			kind.Raise(s, "", payload{i, "name"})
		}
	}}
}

// snapshots reads all operations of a coordinator that has 1,000.
func snapshots() Body {
	c := core.Must(core.NewCoordinator(nothing, core.Options{MaxTracked: 1000}))
	running(c, 1)(1000)
	return Body{Run: func(n int) {
		for range n {
			for range c.Operations(core.OperationQuery{}) {
			}
		}
	}, Close: closing(c)}
}

const cached = 1000 // entries

func hitting(threads int) func() Body {
	return func() Body {
		c := core.Must(lru.New(lru.Options[string, int]{Capacity: cached}))
		c.Set("key", 1)
		return Body{Run: func(n int) {
			spread(threads, n, func(n int) {
				for range n {
					c.Get("key")
				}
			})
		}}
	}
}

// churning asks for ten times as many keys as there is room for.
func churning() Body {
	c := core.Must(lru.New(lru.Options[string, int]{Capacity: cached}))
	ctx := context.Background()
	return Body{Run: func(n int) {
		for i := range n {
			_, err := c.GetOrLoad(ctx, "key."+strconv.Itoa(i%(10*cached)), loadNothing)
			check(err)
		}
	}}
}
