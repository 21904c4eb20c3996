package vet

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/check"
)

func TestRun(t *testing.T) {
	t.Chdir("../check")
	if _, err := os.Stat("../../../../go.work"); err != nil {
		t.Skip("outside of the repository there is no library to check programs of")
	}
	run := func(want int, args ...string) (string, string) {
		t.Helper()
		var out, errOut strings.Builder
		if got := Run(t.Context(), args, nil, &out, &errOut); got != want {
			t.Fatalf("%v: status %d, want %d\n%s%s", args, got, want, &out, &errOut)
		}
		return out.String(), errOut.String()
	}
	run(0, "./testdata/names")
	run(0, "-tests", "../../../../demo/scenario/chain") // it imports a package that has tests
	if out, _ := run(1, "./testdata/alone"); !strings.HasPrefix(out, "testdata/alone/main.go:16:") || strings.Count(out, "\n") != 1 {
		t.Errorf("printed %q, want one finding", out)
	}
	out, _ := run(1, "-json", "./testdata/planted")
	var all []check.Finding
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) < 15 || all[0].File != "testdata/planted/main.go" || all[0].Line == 0 {
		t.Errorf("got %v and %s", err, out)
	}
	if _, text := run(2, "./testdata/gone"); !strings.Contains(text, "testdata/gone") {
		t.Errorf("printed %q", text)
	}
	if _, text := run(2, "-gone"); !strings.Contains(text, "usage: ephemeral vet") {
		t.Errorf("printed %q", text)
	}
}
