package coretest

import "testing"

// Check reports an error, in the words of fmt.Sprintf, unless ok. The test goes on.
func Check(t testing.TB, ok bool, format string, args ...any) {
	if !ok {
		t.Helper()
		t.Errorf(format, args...)
	}
}
