package flow_test

import (
	"flag"
	"testing"
	"testing/synctest"
)

// bubble runs an Example in a bubble, in which a week takes no time.
func bubble(f func()) {
	verbose := flag.Lookup("test.v").Value
	before := verbose.String()
	_ = verbose.Set("false") // or it would print more than the Example
	defer func() { _ = verbose.Set(before) }()
	all := func(string, string) (bool, error) { return true, nil }
	testing.RunTests(all, []testing.InternalTest{{Name: "bubble", F: func(t *testing.T) { synctest.Test(t, func(*testing.T) { f() }) }}})
}
