package retry_test

import (
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var someDay = time.Date(1994, time.November, 6, 8, 49, 7, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"120":                            2 * time.Minute,
		" 0 ":                            0,
		"007":                            7 * time.Second,
		"9223372036":                     9223372036 * time.Second,
		"9223372037":                     longest,
		"92233720370":                    longest,
		"99999999999999999999999999":     longest,
		"Sun, 06 Nov 1994 08:49:37 GMT":  30 * time.Second,
		"Sunday, 06-Nov-94 08:49:37 GMT": 30 * time.Second,
		"Sun Nov  6 08:49:37 1994":       30 * time.Second,
		"Sun, 06 Nov 1994 08:49:07 GMT":  0,
		"Sat, 05 Nov 1994 08:49:37 GMT":  0,
		"Tue, 01 Jan 9999 00:00:00 GMT":  longest,
		"rate-limit:5000ms":              5 * time.Second,
		"rate-limit: 5000MS ":            5 * time.Second,
	} {
		d, ok := retry.ParseRetryAfter(text, someDay)
		assert.True(t, ok, text)
		assert.Equal(t, want, d, text)
	}
	for _, text := range []string{
		"", " ", "-1", "+1", "1.5", "5s", "5000ms", "١٢", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 6 Nov 1994", "rate-limit:5s", "rate-limit:-5ms",
	} {
		_, ok := retry.ParseRetryAfter(text, someDay)
		assert.False(t, ok, text)
	}
}

// It agrees with net/http on dates, with math/big on numbers, and with core on signals.
func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"120", "99999999999999999999", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994", "rate-limit:5000ms", "", " 1", "-1", "Sun, 06 Nov 1994 08:49:37.5 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := retry.ParseRetryAfter(text, someDay)
		if got < 0 {
			t.Fatalf("%q: %v", text, got)
		}
		trimmed := strings.TrimSpace(text)
		if n, isNumber := new(big.Int).SetString(trimmed, 10); isNumber && strings.Trim(trimmed, "0123456789") == "" {
			want := longest
			if n.Mul(n, big.NewInt(int64(time.Second))); n.IsInt64() {
				want = time.Duration(n.Int64())
			}
			if !ok || got != want {
				t.Fatalf("%q: %v, %t, want %v", text, got, ok, want)
			}
			return
		}
		if at, err := http.ParseTime(trimmed); err == nil {
			if want := max(0, at.Sub(someDay)); ok && got != want {
				t.Fatalf("%q: %v, want %v", text, got, want)
			}
			return
		}
		want, isSignal := signals.ParseRetryAfter(trimmed)
		if ok != isSignal || got != want {
			t.Fatalf("%q: %v, %t, want %v, %t", text, got, ok, want, isSignal)
		}
	})
}
