package signals_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The time is linear in the length of the name. Every place of this name has the command without the colon.
func TestParseCommandOfLongNames(t *testing.T) {
	const n = 1 << 20
	name, command := strings.Repeat("a", 2*n), strings.Repeat("a", n)
	if _, ok := signals.ParseCommand(name, command); ok {
		t.Error("found a command without a colon")
	}
	if _, ok := signals.ParseCommand(name+":x", command); ok {
		t.Error("found a command without a boundary")
	}
	if got, ok := signals.ParseCommand(name+"."+command+":x", command); got != "x" || !ok {
		t.Errorf("got %q, %v, want x, true", got, ok)
	}
}

func TestParseRetryAfter(t *testing.T) {
	const longest = 9223372036854 * time.Millisecond // that a Duration can be
	for name, want := range map[string]time.Duration{
		"rate-limit:5000ms": 5 * time.Second, "rate-limit:0ms": 0, "rate-limit:007ms": 7 * time.Millisecond,
		"rate-limit:  250MS ": 250 * time.Millisecond, "rate-limit:1Ms": time.Millisecond, ":1ms": time.Millisecond, "r:9223372036854ms": longest,
	} {
		got, ok := signals.ParseRetryAfter(name)
		coretest.Check(t, ok && got == want, "%q: got %v, %v, want %v", name, got, ok, want)
	}
	for _, name := range []string{
		"r:9223372036855ms", "r:99999999999999999999999ms", "rate-limit", "rate-limit:", "rate-limit:ms", "rate-limit:5", "rate-limit:5s", "rate-limit:-5ms",
		"rate-limit:+5ms", "rate-limit:1_000ms", "rate-limit:1.5ms", "rate-limit:5 ms", "rate-limit:api:5ms", "5ms", "", // an argument begins after the first colon
	} {
		got, ok := signals.ParseRetryAfter(name)
		coretest.Check(t, !ok && got == 0, "%q: got %v, %v, want nothing", name, got, ok)
	}
}

// An atom obeys two commands on its sink.
func ExampleFindCommand() {
	sink := signals.NewSink(signals.SinkOptions{})
	commands := []string{"volume.set", "volume.mute"}
	cancel := sink.Subscribe(signals.CommandPattern(commands...), func(s signals.Signal) {
		if command, payload := signals.FindCommand(s.Name, commands...); command != "" {
			fmt.Printf("%s %q\n", command, payload)
		}
	})
	defer cancel()

	sink.Raise("volume.set:11")
	sink.Raise("kitchen.volume.mute:on")
	sink.Raise("nonvolume.set:3") // matches the pattern, but is not a command
	// Output:
	// volume.set "11"
	// volume.mute "on"
}

// The first command in a name counts, whatever the order of the list, and the pattern
// matches every name with a command.
func TestFindCommand(t *testing.T) {
	for _, commands := range [][]string{{"a.set", "a.add"}, {"a.add", "a.set"}} {
		for name, want := range map[string][2]string{
			"a.set:1":           {"a.set", "1"},
			"x.y.a.add: 1 ":     {"a.add", " 1 "},
			"a.set:":            {"a.set", ""},
			"a.set:a.add:2":     {"a.set", "a.add:2"},
			"a.add:1.a.set:2":   {"a.add", "1.a.set:2"},
			"za.add:1.a.set:2":  {"a.set", "2"},
			"a.set":             {},
			"za.set:1":          {},
			"a.sets:1":          {},
			"":                  {},
			"a.set:1.a.set:b:c": {"a.set", "1.a.set:b:c"},
		} {
			command, payload := signals.FindCommand(name, commands...)
			if got := [2]string{command, payload}; got != want {
				t.Errorf("%q: %q, want %q", name, got, want)
			}
			coretest.Check(t, command == "" || signals.Match(signals.CommandPattern(commands...), name), "the pattern does not match %q", name)
		}
	}
	if command, _ := signals.FindCommand("a.set:1"); command != "" || signals.CommandPattern() != "" {
		t.Errorf("no commands: found %q, pattern %q", command, signals.CommandPattern())
	}
}
