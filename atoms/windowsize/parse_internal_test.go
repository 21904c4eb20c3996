package windowsize

import (
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	unitsForm = regexp.MustCompile(`^(?i:[0-9]+(h|ms|m|s))+$`)
	clockForm = regexp.MustCompile(`^(?:([0-9]+)\.)?([0-9]+):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{1,9}))?$`)
	sizeForm  = regexp.MustCompile(`^[0-9]+$`)
)

func number(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

func capped(n *big.Int) int64 {
	if !n.IsInt64() {
		return int64(longest)
	}
	return n.Int64()
}

// dullAge is what parseAge should say: by regular expressions and numbers of any size.
func dullAge(text string) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	total := new(big.Int)
	add := func(n string, unit time.Duration) {
		total.Add(total, new(big.Int).Mul(number(n), big.NewInt(int64(unit))))
	}
	if unitsForm.MatchString(text) {
		for _, part := range regexp.MustCompile(`(?i)([0-9]+)(h|ms|m|s)`).FindAllStringSubmatch(text, -1) {
			add(part[1], map[string]time.Duration{"h": time.Hour, "m": time.Minute, "s": time.Second, "ms": time.Millisecond}[strings.ToLower(part[2])])
		}
		return time.Duration(capped(total)), true
	}
	part := clockForm.FindStringSubmatch(text)
	if part == nil || number(part[3]).Int64() > 59 || number(part[4]).Int64() > 59 ||
		part[1] != "" && number(part[2]).Cmp(big.NewInt(23)) > 0 {
		return 0, false
	}
	add(part[1], 24*time.Hour)
	add(part[2], time.Hour)
	add(part[3], time.Minute)
	add(part[4], time.Second)
	add((part[5] + "000000000")[:9], 1)
	return time.Duration(capped(total)), true
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "1", "30s", "1h30m", "500MS", "00:05:00", "1.23:59:59.999999999", "2562047h47m16s854ms", "2562047:47:16.854775808",
		"99999999999999999999s", "99999999999999999999.00:00:00", "9223372036854775808", " 5m ", "1.5s", "5m5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseAge(text)
		if want, ok := dullAge(text); ok != (err == nil) || got != want {
			t.Errorf("age %q: %v, %v, want %v, %t", text, got, err, want, ok)
		}
		n, err := parseSize(text)
		trimmed := strings.TrimSpace(text)
		if ok := sizeForm.MatchString(trimmed); ok != (err == nil) || ok && int64(n) != capped(number(trimmed)) {
			t.Errorf("size %q: %d, %v", text, n, err)
		}
		if d, err := time.ParseDuration(trimmed); err == nil && unitsForm.MatchString(trimmed) && d != got {
			t.Errorf("age %q: %v, package time says %v", text, got, d)
		}
	})
}
