package ratelimit

import (
	"strconv"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The limiter either does exactly what a command says, or stays as it was and raises a
// signal.
func FuzzCommand(f *testing.F) {
	for _, value := range []string{"50", "12.5", "1e3", "0", "-0", "-1", "", " 7 ", "Inf", "NaN", "1e400", "0x1p4", "1_000", "1,5", ".5", "5.",
		"+3", "rate.limit.burst:3"} {
		for _, command := range numberCommands {
			f.Add(command + ":" + value)
			f.Add("app." + command + ":" + value)
		}
	}
	f.Add(CommandReset)
	f.Fuzz(func(t *testing.T, name string) {
		sink := signals.NewSink(signals.SinkOptions{})
		l, err := New(core.Rate{PerSecond: 10, Burst: 5}, Options{Sink: sink})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		sink.Raise(name)
		rate, burst := l.Rate(), l.Burst()
		if !(rate == 0 || rate >= MinRate && rate <= MaxRate) || burst < 1 || int64(burst) > bucket.MaxBurst {
			t.Fatalf("%q: rate %g, burst %d", name, rate, burst)
		}
		applied, rejected := sink.Has(SignalApplied) || sink.Has(SignalBurstApplied), sink.Has(SignalRejected)
		if name == SignalApplied || name == SignalBurstApplied || name == SignalRejected {
			return
		}
		command, value := parseCommand(name)
		if is := command != "" && command != CommandReset; is != (applied || rejected) || applied && rejected {
			t.Fatalf("%q: command %q, applied %v, rejected %v", name, command, applied, rejected)
		}
		if !applied && (rate != 10 || burst != 5) {
			t.Fatalf("%q changed something without a word", name)
		}
		if !applied {
			return
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%q was taken for a number", value)
		}
		want := map[string]float64{
			CommandSet: n, CommandIncrease: 10 + n, CommandDecrease: max(10-n, 1), CommandBurst: float64(int64(n)),
		}[command]
		got := rate
		if command == CommandBurst {
			got = float64(burst)
		}
		if got != want {
			t.Fatalf("%q: %g, not %g", name, got, want)
		}
	})
}
