package flow_test

import (
	"flag"
	"testing"
	"testing/synctest"
)

// bubble runs an Example in a bubble, in which a week takes no time.
func bubble(f func()) {
	for name, value := range map[string]string{"test.v": "false", "test.skip": "", "test.count": "1"} { // or it would print more than the Example, or nothing
		of := flag.Lookup(name).Value
		before := of.String()
		_ = of.Set(value)
		defer func() { _ = of.Set(before) }()
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.RunTests(all, []testing.InternalTest{{Name: "bubble", F: func(t *testing.T) { synctest.Test(t, func(*testing.T) { f() }) }}})
}
