package main

import (
	"os"
	"reflect"
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
		faults, warnings := p.faults()
		for _, f := range faults {
			t.Error(f)
		}
		for _, w := range warnings {
			t.Log("within the room above its goal:", w)
		}
	}
	for _, l := range policy.Limits {
		if l.Lines+l.Tests <= 0 || l.Reason == "" {
			t.Errorf("goal of %s: want lines and a reason", l.Part)
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
		if got[i].goal != policy.LimitOf(got[i].name) {
			t.Errorf("%s has goal %v", got[i].name, got[i].goal)
		}
		got[i].goal, got[i].files = policy.Limit{}, nil
	}
	want := []part{
		{name: "core", code: 7, tests: 1},
		{name: "atoms/ratelimit/...", code: 2},
		{name: "atoms/small/...", code: 2, tests: 2},
		{name: "atoms/smaller/..."},
		{name: "core/...", code: 8, tests: 1},
		{name: "atoms/...", code: 4, tests: 2},
		{name: "...", code: 12, tests: 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestWrite(t *testing.T) {
	goal := policy.Limit{Lines: 600, Tests: 125, Reason: "it is small"}
	parts := []part{
		{"atoms/a/...", 631, 10, goal, []file{{"a.go", 400}, {"b.go", 231}}},
		{"demo/...", 90, 0, policy.Limit{}, nil},
		{"atoms/b/...", 601, 800, goal, nil},
		{"atoms/c/...", 10, 150, goal, nil},
	}
	want := `
  code  goal  over  tests  tests/code  part
   631   600   +31     10        0.02  atoms/a/...
    90                  0        0.00  demo/...
   601   600    +1    800        1.33  atoms/b/...
    10   600          150       15.00  atoms/c/...
`
	var out strings.Builder
	if err := write(&out, parts); err != nil || "\n"+out.String() != want {
		t.Errorf("got %v\n%s\nwant%s", err, out.String(), want)
	}
	var faults, warnings []string
	for _, p := range parts {
		f, w := p.faults()
		faults, warnings = append(faults, f...), append(warnings, w...)
	}
	if len(faults) != 2 || !strings.Contains(faults[0], "atoms/a/... has 631 lines of code, 31 more than its goal: it is small. ") || !strings.Contains(faults[0], "a.go (400), b.go (231)") ||
		!strings.Contains(faults[1], "atoms/b/... has 800 lines of tests, 49 more than its goal") {
		t.Errorf("faults %q", faults)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "atoms/b/... has 601 lines of code, 1 more") {
		t.Errorf("warnings %q", warnings)
	}
	if policy.LimitOf("atoms/retry/...").Lines != 640 || policy.LimitOf("atoms/echo/...").Lines != 600 || policy.LimitOf("bench/...").Lines != 0 {
		t.Error("the goals of atoms are found wrong")
	}
}
