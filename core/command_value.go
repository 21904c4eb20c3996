package core

import "strings"

// FindCommand looks in a signal name for each of the commands, as [ParseCommand] does. It
// returns the command that comes first in the name, with its payload. All text after a
// command is its payload, even if it reads like another command. If no command is found,
// command is "".
func FindCommand(name string, commands ...string) (command, payload string) {
	for _, c := range commands {
		if p, ok := ParseCommand(name, c); ok && (command == "" || len(p) > len(payload)) {
			command, payload = c, p
		}
	}
	return command, payload
}

// CommandPattern is a pattern for [Sink.Subscribe] that matches every name in which
// [FindCommand] finds one of the commands. A command is the text before a colon, as in
// "window.size.set:100": see [ParseCommand]. It matches a few other names as well, so a
// handler must still call FindCommand.
func CommandPattern(commands ...string) string {
	patterns := make([]string, len(commands))
	for i, c := range commands {
		patterns[i] = "*" + c + ":*"
	}
	return strings.Join(patterns, ",")
}
