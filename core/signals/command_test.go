package signals_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestParseCommand(t *testing.T) {
	tests := []struct {
		name, command, want string
		ok                  bool
	}{
		{"window.size.set:100", "window.size.set", "100", true},
		{"app.window.size.set:200", "window.size.set", "200", true},
		{"app:window.size.set:200", "window.size.set", "200", true},
		{"window.age.set:00:30:00", "window.age.set", "00:30:00", true},
		{"note: a b  !", "note", " a b  !", true},
		{"set:", "set", "", true},
		{"set:1:set:2", "set", "1:set:2", true}, // the first place counts
		{"set.set:1", "set", "1", true},         // the first has no colon
		{"sets.set:1", "set", "1", true},
		{"a.b.a.b:1", "a.b", "1", true},
		{"aa.aaa:1", "aa", "", false},
		{"a.a.a:1", "a.a", "1", true}, // places overlap

		{"set", "set", "", false},
		{"set.x:1", "set", "", false},
		{"SET:1", "set", "", false},
		{"other:1", "set", "", false},
		{"", "set", "", false},
		{"set:1", "", "", false},
		{":1", "", "", false},
		{"", "", "", false},

		// A command begins at the start of the name, or after a dot or a colon.
		{"reset:5", "set", "", false},
		{"xwindow.size.set:1", "window.size.set", "", false},
		{"x-set:1", "set", "", false},
		{"reset:set:5", "set", "5", true},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s in %s", tt.command, tt.name), func(t *testing.T) {
			got, ok := signals.ParseCommand(tt.name, tt.command)
			coretest.Check(t, got == tt.want && ok == tt.ok, "got %q, %v, want %q, %v", got, ok, tt.want, tt.ok)
		})
	}
}

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
	const longest = 9223372036854 // milliseconds in the longest Duration
	tests := []struct {
		name string
		want time.Duration
		ok   bool
	}{
		{"rate-limit:5000ms", 5 * time.Second, true},
		{"rate-limit:0ms", 0, true},
		{"rate-limit:007ms", 7 * time.Millisecond, true},
		{"rate-limit:  250MS ", 250 * time.Millisecond, true},
		{"rate-limit:1Ms", time.Millisecond, true},
		{":1ms", time.Millisecond, true},
		{fmt.Sprintf("r:%dms", int64(longest)), longest * time.Millisecond, true},

		{fmt.Sprintf("r:%dms", int64(longest+1)), 0, false},
		{"r:99999999999999999999999ms", 0, false},
		{"rate-limit", 0, false},
		{"rate-limit:", 0, false},
		{"rate-limit:ms", 0, false},
		{"rate-limit:5", 0, false},
		{"rate-limit:5s", 0, false},
		{"rate-limit:-5ms", 0, false},
		{"rate-limit:+5ms", 0, false},
		{"rate-limit:1_000ms", 0, false},
		{"rate-limit:1.5ms", 0, false},
		{"rate-limit:5 ms", 0, false},
		{"rate-limit:api:5ms", 0, false}, // after the first colon
		{"5ms", 0, false},
		{"", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := signals.ParseRetryAfter(tt.name)
			coretest.Check(t, got == tt.want && ok == tt.ok, "got %v, %v, want %v, %v", got, ok, tt.want, tt.ok)
		})
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
