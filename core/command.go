package core

import (
	"strconv"
	"strings"
	"time"
)

// ParseCommand looks for command in a signal name of the form "command:payload"
// and returns the payload: everything after the colon, as it stands, so
// ParseCommand("window.size.set:100", "window.size.set") is "100". Text before
// the command is allowed when a dot or a colon separates the two
// ("app.window.size.set:200"); the first such place counts. An empty payload is
// a match; an empty command is not.
func ParseCommand(name, command string) (payload string, ok bool) {
	if command == "" {
		return "", false
	}
	for colon := len(command); colon < len(name); colon++ { // before, there is no room for the command
		if name[colon] != ':' {
			next := strings.IndexByte(name[colon:], ':')
			if next < 0 {
				break
			}
			colon += next
		}
		start := colon - len(command)
		if name[start:colon] == command && (start == 0 || name[start-1] == '.' || name[start-1] == ':') {
			return name[colon+1:], true
		}
	}
	return "", false
}

// ParseRetryAfter reads the delay from a signal name such as
// "rate-limit:5000ms": the text after the first colon, blanks trimmed, is a
// non-negative whole number followed by "ms" in either case. A delay beyond what
// a [time.Duration] holds is no delay.
func ParseRetryAfter(name string) (d time.Duration, ok bool) {
	_, arg, found := strings.Cut(name, ":")
	if !found {
		return 0, false
	}
	arg = strings.TrimSpace(arg)
	if len(arg) < 3 || !strings.EqualFold(arg[len(arg)-2:], "ms") {
		return 0, false
	}
	ms, err := strconv.ParseUint(arg[:len(arg)-2], 10, 63)
	if err != nil || ms > uint64(maxDuration/time.Millisecond) {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

const maxDuration = time.Duration(1<<63 - 1)
