package signals

import (
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
)

// ParseCommand looks for command in a signal name of the form "command:payload" and
// returns the payload: all text after the colon, unchanged. So
// ParseCommand("window.size.set:100", "window.size.set") returns "100". Other text may
// come before the command if it ends in a dot or a colon ("app.window.size.set:200"). If
// command occurs several times, the first occurrence counts. A payload may be empty. An
// empty command is never found.
//
//ephemeral:none
func ParseCommand(name, command string) (payload string, ok bool) {
	if n := len(command); n < len(name) && name[n] == ':' && name[:n] == command && n > 0 {
		return name[n+1:], true
	}
	return parseScoped(name, command)
}

// parseScoped finds a command after other text. Most commands have none.
//
//go:noinline
func parseScoped(name, command string) (payload string, ok bool) {
	for colon := len(command) + 1; command != "" && colon < len(name); colon++ {
		start := colon - len(command)
		begins := name[start-1] == '.' || name[start-1] == ':'
		if name[colon] == ':' && begins && name[start:colon] == command {
			return name[colon+1:], true
		}
	}
	return "", false
}

// ParseRetryAfter reads the delay from a signal name such as "rate-limit:5000ms". The
// text after the first colon must be a non-negative whole number followed by "ms" or
// "MS"; blanks around the text are ignored. If a [time.Duration] cannot hold the delay,
// ok is false.
//
//ephemeral:none
func ParseRetryAfter(name string) (d time.Duration, ok bool) {
	_, arg, _ := strings.Cut(name, ":")
	digits, found := strings.CutSuffix(strings.ToLower(strings.TrimSpace(arg)), "ms")
	ms, err := strconv.ParseUint(digits, 10, 63)
	if !found || err != nil || ms > uint64(clock.MaxDuration/time.Millisecond) {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// FindCommand looks in a signal name for each of the commands, as [ParseCommand] does. It
// returns the command that comes first in the name, with its payload. All text after a
// command is its payload, even if it reads like another command. If no command is found,
// command is "".
//
//ephemeral:none
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
//
//ephemeral:none
func CommandPattern(commands ...string) string {
	patterns := make([]string, len(commands))
	for i, c := range commands {
		patterns[i] = "*" + c + ":*"
	}
	return strings.Join(patterns, ",")
}
