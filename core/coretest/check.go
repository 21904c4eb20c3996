package coretest

import "testing"

// Check reports an error, formatted by fmt.Sprintf, if ok is false. The test goes on.
func Check(t testing.TB, ok bool, format string, args ...any) {
	if !ok {
		t.Helper()
		t.Errorf(format, args...)
	}
}
