package bench

import (
	"strconv"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

const someNames = "both build names"

// originalSignals raise signals. An operation is one raise or one chain.
var originalSignals = []Original{
	{"raise, no listener", 750_000, onFresh(signals.SinkOptions{}, 0, raiseOne), "", 0},
	{"raise, 1 listener", 110_000, onFresh(signals.SinkOptions{}, 1, raiseOne), cancellable, 0},
	{"raise, 5 listeners", 680_000, onFresh(signals.SinkOptions{}, 5, raiseOne), cancellable, 0},
	{"raise, 10 listeners", 630_000, onFresh(signals.SinkOptions{}, 10, raiseOne), cancellable, 0},
	{"match simple", 7_000_000, matching([]string{"test.*"}, "test.foo", "test.bar", "other.baz", "test.qux"), "", 0},
	{"match complex", 12_800_000, matching(
		[]string{"app.*.error.*", "system.metrics.*.cpu.*", "user.*.login.*", "cache.*.miss.*"},
		"app.web.error.500", "system.metrics.server1.cpu.high", "user.john.login.success", "cache.redis.miss.product", "other.unmatched.signal",
	), "", 0},
	{"match mixed", 5_900_000, matching(
		[]string{"*", "*.level", "*.*.deep", "*.level.*.deep"},
		"simple", "one.level", "two.level.deep", "three.level.very.deep", "four.level.even.more.deep",
	), "", 0},
	{"parse commands", 9_450_000, parsing, "", 0},
	{"limiter acquire", 1_580_000, acquiring(1), "a limiter of .NET gets its tokens from a timer; ours reads the clock", 0},
	{"window commands", 240_000, resizing, "ours raises an answer to each command", -1},
	{"chain of 3", 156_000, chained(3, 1), "", -1},
	{"chain of 10", 39_000, chained(10, 1), "", -1},
	{"chain of 3, 16 threads", 108_800, chained(3, 16), "", -1},
	{"burst, 100 names", 800_000, onFresh(signals.SinkOptions{}, 0, raiseBuilt("burst.", 100)), someNames, -1},
	{"overflow of 100", 614_000, onFresh(signals.SinkOptions{Capacity: 100}, 0, raiseBuilt("overflow.", 0)), someNames, -1},
	{"window of 100k, unique", 100_000, onFresh(signals.SinkOptions{Capacity: 100_000}, 0, raiseBuilt("signal.", 0)), someNames, -1},
	{"window of 50k, 1 listener", 50_000, onFresh(signals.SinkOptions{Capacity: 50_000}, 1, raiseBuilt("signal.", 0)), cancellable, -1},
	{"2 threads, unique", 650_000, onFresh(signals.SinkOptions{}, 0, onThreads(2, raiseBuilt("thread.", 0))), someNames, -1},
	{"16 threads, unique", 528_000, onFresh(signals.SinkOptions{}, 0, onThreads(16, raiseBuilt("thread.", 0))), someNames, -1},
	{"16 threads, 1 listener", 464_000, onFresh(signals.SinkOptions{}, 1, onThreads(16, raiseBuilt("thread.", 0))), cancellable, -1},
}

const cancellable = "ours can be cancelled and waited for"

// onFresh makes a sink with listeners of all names in each run.
func onFresh(opts signals.SinkOptions, listeners int, run func(s *signals.Sink, n int)) func() Body {
	return func() Body {
		return Body{Run: func(n int) {
			s := signals.NewSink(opts)
			for range listeners {
				s.Subscribe("*", func(signals.Signal) {})
			}
			run(s, n)
		}}
	}
}

func raiseOne(s *signals.Sink, n int) {
	for range n {
		s.Raise("test.signal")
	}
}

// raiseBuilt raises names with a number, which it builds. They are all different, or there
// are so many.
func raiseBuilt(prefix string, different int) func(s *signals.Sink, n int) {
	return func(s *signals.Sink, n int) {
		var text [32]byte
		for i := range n {
			if different > 0 {
				i %= different
			}
			//ephemeral:raises name.*, work.*
			s.Raise(string(strconv.AppendInt(append(text[:0], prefix...), int64(i), 10)))
		}
	}
}

// chained makes a chain of handlers in each run. A chain is an operation.
func chained(atoms, threads int) func() Body {
	return onFresh(signals.SinkOptions{}, 0, func(s *signals.Sink, n int) {
		chain(s, atoms)
		onThreads(threads, raiseInput)(s, n)
	})
}

// chain makes handlers: each raises the signal that the next one waits for.
func chain(s *signals.Sink, atoms int) {
	from := "input"
	for i := range atoms {
		to := "step." + strconv.Itoa(i)
		if i == atoms-1 {
			to = "output"
		}
		s.Subscribe(from, func(signals.Signal) { s.Raise(to) })
		from = to
	}
}

func raiseInput(s *signals.Sink, n int) {
	for range n {
		s.Raise("input")
	}
}

// matching compares each name with each pattern in turns.
func matching(patterns []string, names ...string) func() Body {
	return func() Body {
		return Body{Run: func(n int) {
			for n > 0 {
				for _, name := range names {
					for _, pattern := range patterns {
						signals.Match(pattern, name)
					}
					n -= len(patterns)
				}
			}
		}}
	}
}

func parsing() Body {
	commands := [...]struct{ name, command string }{
		{"window.size.set:500", "window.size.set"},
		{"rate.limit.set:10.5", "rate.limit.set"},
		{"window.time.set:30s", "window.time.set"},
	}
	return Body{Run: func(n int) {
		for n > 0 {
			for _, c := range commands {
				_, _ = signals.ParseCommand(c.name, c.command)
			}
			n -= len(commands)
		}
	}}
}
