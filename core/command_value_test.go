package core_test

import (
	"fmt"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// An atom that takes two commands from its sink.
func ExampleFindCommand() {
	sink := core.NewSink(core.SinkOptions{})
	commands := []string{"volume.set", "volume.mute"}
	cancel := sink.Subscribe(core.CommandPattern(commands...), func(s core.Signal) {
		if command, payload := core.FindCommand(s.Name, commands...); command != "" {
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
			command, payload := core.FindCommand(name, commands...)
			if got := [2]string{command, payload}; got != want {
				t.Errorf("%q: %q, want %q", name, got, want)
			}
			coretest.Check(t, command == "" || core.Match(core.CommandPattern(commands...), name), "the pattern does not match %q", name)
		}
	}
	if command, _ := core.FindCommand("a.set:1"); command != "" || core.CommandPattern() != "" {
		t.Errorf("no commands: found %q, pattern %q", command, core.CommandPattern())
	}
}
