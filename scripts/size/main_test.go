package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// TestLimits measures the checkout that the test runs in.
func TestLimits(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range measure(tree) {
		if p.over() > 0 {
			t.Errorf("%s has %d lines, %d more than its limit: %s", p.name, p.limit.Lines+p.over(), p.over(), p.limit.Reason)
		}
		if p.testsOver() > 0 {
			t.Errorf("%s has %d lines of tests, %d more than 1.5 for each line of code: which promise is tested twice?", p.name, p.tests, p.testsOver())
		}
	}
	for _, l := range policy.Limits {
		if l.Lines <= 0 || l.Reason == "" {
			t.Errorf("limit of %s: want lines and a reason", l.Part)
		}
	}
}

const sample = `// A comment.
package p /* one
two */ // three

/*

alone
*/
const a = "// a string" /* and */ + "another" // and

var b = ` + "`raw\n\n// text\n`" + `

func f() { /* nothing

*/ }
`

func TestMeasure(t *testing.T) {
	fsys := fstest.MapFS{}
	for name, text := range map[string]string{
		"go.work":                    "go 1.26\n",
		"core/go.mod":                "module core\n",
		"core/p.go":                  sample,
		"core/p_test.go":             "package p\n",
		"core/sub/sub.go":            "package sub\n",
		"core/sub/testdata/skip.go":  "package skip\n",
		"atoms/ratelimit/go.mod":     "module ratelimit\n",
		"atoms/ratelimit/r.go":       "package ratelimit\n\nvar a, b = 1, 2\n",
		"atoms/small/go.mod":         "module small\n",
		"atoms/small/small.go":       "package small\n",
		"atoms/small/in/small.go":    "package in\n",
		"atoms/small/in/s_test.go":   "package in\n\nconst c = 1\n",
		"atoms/smaller/go.mod":       "module smaller\n",
		"atoms/smaller/unlimited.md": "text\n",
	} {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := repo.Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	got := measure(tree)
	for i := range got {
		if got[i].limit != policy.LimitOf(got[i].name) {
			t.Errorf("%s has limit %v", got[i].name, got[i].limit)
		}
		got[i].limit = policy.Limit{}
	}
	want := []part{
		{name: "core", code: 7, tests: 1},
		{name: "atoms/ratelimit/...", code: 2},
		{name: "atoms/small/...", code: 2, tests: 2},
		{name: "atoms/smaller/..."},
		{name: "core/...", code: 8, tests: 1},
		{name: "atoms/...", code: 4, tests: 2},
		{name: "tests", tests: 3},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestWrite(t *testing.T) {
	limit := policy.Limit{Lines: 600}
	parts := []part{{"atoms/a/...", 601, 10, limit}, {"demo/...", 90, 0, policy.Limit{}}, {"atoms/b/...", 600, 900, limit}, {"tests", 0, 611, limit}}
	want := `
  code  limit  over  tests  tests/code  part
   601    600    +1     10         0.0  atoms/a/...
    90                   0         0.0  demo/...
   600    600          900         1.5  atoms/b/...
     0    600   +11    611              tests
`
	var out strings.Builder
	if err := write(&out, parts); err != nil || "\n"+out.String() != want {
		t.Errorf("got %v\n%s\nwant%s", err, out.String(), want)
	}
	if policy.LimitOf("atoms/retry/...").Lines != 700 || policy.LimitOf("atoms/echo/...").Lines != 600 || policy.LimitOf("bench/...").Lines != 0 {
		t.Error("the limits of atoms are found wrong")
	}
}
