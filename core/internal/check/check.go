// Package check has the checks of options and arguments that the packages of core share.
package check

import "fmt"

// Error returns an error with that text if something is wrong, and nil otherwise.
func Error(wrong bool, format string, args ...any) error {
	if wrong {
		return fmt.Errorf(format, args...)
	}
	return nil
}

// Panic panics with that text if something is wrong.
func Panic(wrong bool, text string) {
	if wrong {
		panic(text)
	}
}

// NotNegative returns an error that names the value, if it is negative.
func NotNegative[N ~int | ~int64](name string, value N) error {
	return Error(value < 0, "%s is %v, but must not be negative", name, value)
}
