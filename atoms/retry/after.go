package retry

import (
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// ParseRetryAfter reads how long a server asks its callers to wait, for [After]. It
// understands
//
//   - the value of a Retry-After header (RFC 9110, section 10.2.3): a whole number
//     of seconds, at most the longest delay there is, or a date in one
//     of the three forms of HTTP, which it takes the delay from now to; a date that
//     has passed is a delay of 0;
//   - a signal name like "rate-limit:5000ms"; see [core.ParseRetryAfter].
//
// Blanks around it are ignored. Anything else is not ok.
func ParseRetryAfter(text string, now time.Time) (d time.Duration, ok bool) {
	text = strings.TrimSpace(text)
	if d, ok := seconds(text); ok {
		return d, true
	}
	for _, layout := range httpDates {
		if at, err := time.Parse(layout, text); err == nil {
			return max(0, at.Sub(now)), true
		}
	}
	return core.ParseRetryAfter(text)
}

// httpDates are IMF-fixdate, RFC 850's format and that of asctime. All are in UTC,
// whatever they say.
var httpDates = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	time.ANSIC,
}

// seconds reads a number of seconds that has digits only.
func seconds(text string) (d time.Duration, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		digit := time.Duration(c-'0') * time.Second
		if d > (longest-digit)/10 {
			d = longest
		} else {
			d = 10*d + digit
		}
	}
	return d, text != ""
}
