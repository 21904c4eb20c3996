package retry

import (
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// ParseRetryAfter reads the delay that a server asks for. Give it to [After]. The text is
//
//   - the value of a Retry-After header (RFC 9110, section 10.2.3): a whole number of
//     seconds, or a date in one of the three formats of HTTP. The delay of a date is the
//     time from now to the date, and 0 if the date has passed.
//   - or a signal name such as "rate-limit:5000ms"; see [signals.ParseRetryAfter].
//
// Blanks around the text are ignored. A number that is too large for a [time.Duration] is
// the longest one. For any other text, ok is false.
//
//ephemeral:none
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
	return signals.ParseRetryAfter(text)
}

// httpDates are the formats IMF-fixdate, RFC 850 and asctime. All dates are in UTC.
var httpDates = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	time.ANSIC,
}

// seconds reads a number of seconds, which must consist of digits.
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
