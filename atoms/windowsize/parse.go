package windowsize

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// parseSize reads a whole number; one that is too large counts as the largest.
func parseSize(text string) (int, error) {
	n, ok := digits(strings.TrimSpace(text))
	if !ok {
		return 0, fmt.Errorf("windowsize: %s is not a whole number of signals", quote(text))
	}
	return int(min(n, math.MaxInt)), nil
}

// parseAge reads a duration like 1h30m, 90s and 500ms, or like 00:05:00; one that is too
// long counts as the longest.
func parseAge(text string) (time.Duration, error) {
	trimmed := strings.TrimSpace(text)
	read := units
	if strings.Contains(trimmed, ":") {
		read = clock
	}
	d, ok := read(trimmed)
	if !ok {
		return 0, fmt.Errorf("windowsize: %s is not a duration like 30s, 5m, 500ms or 00:05:00", quote(text))
	}
	return d, nil
}

// units reads one or more numbers with their units.
func units(text string) (total time.Duration, ok bool) {
	for text != "" {
		end := strings.IndexFunc(text, func(c rune) bool { return c < '0' || c > '9' })
		if end < 0 {
			return 0, false // a number without a unit
		}
		n, ok := digits(text[:end])
		if !ok {
			return 0, false
		}
		text = text[end:]
		if end = strings.IndexAny(text, "0123456789"); end < 0 {
			end = len(text)
		}
		unit := time.Duration(0)
		switch strings.ToLower(text[:end]) {
		case "h":
			unit = time.Hour
		case "m":
			unit = time.Minute
		case "s":
			unit = time.Second
		case "ms":
			unit = time.Millisecond
		default:
			return 0, false
		}
		text = text[end:]
		total = plus(total, times(n, unit))
		if text == "" {
			return total, true
		}
	}
	return 0, false
}

// clock reads [days.]hours:minutes:seconds[.fraction].
func clock(text string) (time.Duration, bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return 0, false
	}
	hours, inDays := parts[0], false
	var days int64
	if before, after, found := strings.Cut(hours, "."); found {
		n, ok := digits(before)
		if !ok {
			return 0, false
		}
		days, hours, inDays = n, after, true
	}
	h, ok := digits(hours)
	if !ok || inDays && h > 23 {
		return 0, false
	}
	m, ok := sixty(parts[1])
	if !ok {
		return 0, false
	}
	seconds, fraction, found := strings.Cut(parts[2], ".")
	s, ok := sixty(seconds)
	if !ok {
		return 0, false
	}
	var nanoseconds int64
	if found {
		if len(fraction) > 9 {
			return 0, false
		}
		if _, ok = digits(fraction); !ok {
			return 0, false
		}
		nanoseconds, _ = digits(fraction + strings.Repeat("0", 9-len(fraction)))
	}
	total := plus(times(days, 24*time.Hour), times(h, time.Hour))
	return plus(total, times(m, time.Minute)+times(s, time.Second)+time.Duration(nanoseconds)), true
}

// sixty reads a number of one or two digits, below 60.
func sixty(text string) (int64, bool) {
	n, ok := digits(text)
	return n, ok && len(text) <= 2 && n < 60
}

// digits reads a number that has digits only; one that is too large counts as the
// largest.
func digits(text string) (n int64, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		if digit := int64(c - '0'); n > (math.MaxInt64-digit)/10 {
			n = math.MaxInt64
		} else {
			n = 10*n + digit
		}
	}
	return n, text != ""
}

func times(n int64, unit time.Duration) time.Duration {
	if n > int64(longest/unit) {
		return longest
	}
	return time.Duration(n) * unit
}

func plus(a, b time.Duration) time.Duration {
	if a > longest-b {
		return longest
	}
	return a + b
}

// quote is text as it is shown: what others have written may be of any length.
func quote(text string) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q...", text[:most])
	}
	return fmt.Sprintf("%q", text)
}
