package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Whenever the child is killed, what it has accepted arrives. At most the requests that its
// eight slots had begun are made twice.
func TestKill(t *testing.T) {
	for _, after := range []int{1, 25} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := show(&out, after); err != nil {
				t.Fatal(err)
			}
			want := `^killed after \d+ requests, [1-9]\d* events were accepted\nall of them have arrived, [0-8] of them twice\n$`
			if !regexp.MustCompile(want).MatchString(out.String()) {
				t.Errorf("got\n%s", &out)
			}
		})
	}
}
