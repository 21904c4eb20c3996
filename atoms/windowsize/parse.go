package windowsize

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// parseSize reads a whole number. A number that is too large counts as the largest.
func parseSize(text string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, strconv.IntSize-1)
	if err != nil && !guard.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("windowsize: %s is not a whole number of signals", quote(text))
	}
	return int(n), nil // when it is out of range, n is the largest
}

// parseAge reads a duration such as 1h30m, 90s or 1.5s, or a clock time such as 00:05:00.
func parseAge(text string) (time.Duration, error) {
	trimmed := strings.ToLower(strings.TrimSpace(text))
	read := parseUnits
	if strings.Contains(trimmed, ":") {
		read = parseClock
	}
	d, ok := read(trimmed)
	if !ok {
		return 0, fmt.Errorf("windowsize: %s is not a duration like 30s, 5m, 500ms or 00:05:00", quote(text))
	}
	return d, nil
}

// parseUnits is [time.ParseDuration], but does not accept signs and numbers without a unit.
func parseUnits(text string) (time.Duration, bool) {
	if strings.ContainsAny(text, "+-") || strings.Trim(text, "0") == "" {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// parseClock reads [days.]hours:minutes:seconds[.fraction], with at most 23 hours.
func parseClock(text string) (time.Duration, bool) {
	days := uint64(0)
	before, after, found := strings.Cut(text, ".")
	if found && !strings.Contains(before, ":") {
		var err error
		if days, err = strconv.ParseUint(before, 10, 16); err != nil {
			return 0, false
		}
		text = after
	}
	at, err := time.Parse("15:4:5", text)
	if err != nil {
		return 0, false
	}
	midnight := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	return time.Duration(days)*24*time.Hour + at.Sub(midnight), true
}

// quote quotes a text of other code, which may be long.
func quote(text string) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q...", text[:most])
	}
	return strconv.Quote(text)
}
