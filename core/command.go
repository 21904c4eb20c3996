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
	for at := 0; command != ""; at++ {
		next := strings.Index(name[at:], command+":")
		if next < 0 {
			break
		}
		if at += next; at == 0 || name[at-1] == '.' || name[at-1] == ':' {
			return name[at+len(command)+1:], true
		}
	}
	return "", false
}

// ParseRetryAfter reads the delay from a signal name such as
// "rate-limit:5000ms": the text after the first colon, blanks trimmed, is a
// non-negative whole number followed by "ms" in either case. A delay beyond what
// a [time.Duration] holds is no delay.
func ParseRetryAfter(name string) (d time.Duration, ok bool) {
	_, arg, _ := strings.Cut(name, ":")
	digits, found := strings.CutSuffix(strings.ToLower(strings.TrimSpace(arg)), "ms")
	ms, err := strconv.ParseUint(digits, 10, 63)
	if !found || err != nil || ms > uint64(maxDuration/time.Millisecond) {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

const maxDuration = time.Duration(1<<63 - 1)
