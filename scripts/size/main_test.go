package main

import (
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repotest"
)

// TestCeilings measures the checkout that the test runs in.
func TestCeilings(t *testing.T) {
	_, tree := repotest.Here(t)
	ceilings := parse(tree.Text(ceilingsFile))
	for _, s := range measure(tree) {
		for _, fault := range s.faults(ceilings) {
			t.Error(fault)
		}
		delete(ceilings, s.dir)
	}
	for dir := range ceilings {
		t.Errorf("%s has a ceiling, but is no package: go run ./scripts/size -write", dir)
	}
}

const sample = `// A comment.
package p /* one
two */ // three

/*

alone
*/
const A = "// a string" /* and */ + "another" // and

var b = ` + "`raw\n\n// text\n`" + `

type T struct{ X, Y, z int }

type I interface{ M(); n() }

type hidden struct{}

func (T) Do(x, y int, z string) {
	for x < y && y > 0 || x == 1 {
		if x > 2 {
		}
		switch {
		case x == 3:
		default:
		}
	}
}

func (hidden) Done() { /* nothing

*/ }
`

func TestMeasure(t *testing.T) {
	all := measure(repotest.Load(t, map[string]string{
		"core/go.mod":            "module core\n",
		"core/p.go":              sample,
		"core/p_test.go":         "package p\n\nfunc Helper(a, b, c, d, e, f, g int) {}\n",
		"core/sub/sub.go":        "package sub\n\nfunc f() {}\n",
		"core/sub/testdata/x.go": "package x\n",
	}))
	var out strings.Builder
	if err := write(&out, all); err != nil {
		t.Fatal(err)
	}
	// A, T, X, Y, I, M and Do; 1, for, && and ||, if, and one case.
	for _, want := range []string{"   20      2      7      1           6           3  core\n", "    2      0      0      1           1           0  core/sub\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line %q in\n%s", want, &out)
		}
	}

	ceilings := parse([]byte(lowered(all, nil)))
	if faults := all[0].faults(ceilings); len(faults) > 0 {
		t.Errorf("at its ceilings, core has faults %q", faults)
	}
	if faults := all[0].faults(nil); len(faults) != 1 || !strings.Contains(faults[0], "has no ceilings") {
		t.Errorf("without ceilings, the faults are %q", faults)
	}
	below := map[string][figures]int{"core": {7, 1, 5, 3}}
	if faults := all[0].faults(below); len(faults) != 1 || faults[0] != "core has 6 as the complexity of a function, and its ceiling is 5: Do in p.go" {
		t.Errorf("above a ceiling, the faults are %q", faults)
	}
	if got := parse([]byte(lowered(all, below)))["core"]; got != below["core"] {
		t.Errorf("-write raised ceilings to %v", got)
	}
}
