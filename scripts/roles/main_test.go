package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repotest"
)

// Every exported name that takes or raises names of signals has a directive, and the table is
// made of the directives.
func TestTableIsUpToDate(t *testing.T) {
	_, tree := repotest.Here(t)
	changes, err := plan(tree)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) > 0 {
		t.Error("the table is not up to date; run: go run ./scripts/roles")
	}
}

// tree returns a repository with one package of core, and its module complete.
func tree(t *testing.T, core, complete string) *repo.Tree {
	t.Helper()
	files := map[string]string{}
	for dir, text := range map[string]string{"core": core, "complete": complete} {
		files[dir+"/go.mod"] = "module " + repo.Prefix + dir + "\n"
		files[dir+"/a.go"] = "package " + dir + "\n" + text
	}
	return repotest.Load(t, files)
}

func TestPlan(t *testing.T) {
	changes, err := plan(tree(t, `
const SignalUsed = "used"

//ephemeral:raises open.{Options.Name|main}
const SignalOpen = "open"

var Used, Other = NewKind[int](SignalUsed), NewKind[int]("other")

type Options struct {
	//ephemeral:none
	Name string
	// On and Off are patterns.
	//
	//ephemeral:pattern
	On, Off string
}

// Wait waits for a signal.
//
//ephemeral:pattern {name}
func Wait(int, _ bool, name string) {}

//ephemeral:view
func (s *Sink) View() {}
`, `
import "`+repo.Prefix+`core"

// WaitAll waits for signals.
func WaitAll(a int, b bool, name string) { core.Wait(a, b, name) }

var Used = core.Used
`))
	want := `complete Used is used
complete WaitAll pattern {#2}
core Options.Off pattern {core Options.Off}
core Options.On pattern {core Options.On}
core Other is other
core Other linked other
core SignalOpen linked open.{core Options.Name|main}
core SignalUsed linked used
core Sink.View view
core Used is used
core Used linked used
core Wait pattern {#2}
`
	if got := string(changes[table]); err != nil || got != want {
		t.Errorf("got %v and\n%s\nwant\n%s", err, got, want)
	}
}

func TestPlanReportsMissingAndWrongDirectives(t *testing.T) {
	for code, want := range map[string]string{
		"// Wait waits for a signal.\nfunc Wait(name string) {}":                         "Wait needs a directive",
		"func Wait(namePattern string) {}":                                               "Wait needs a directive",
		"func Wait(k Kind[int]) {}":                                                      "it has a kind",
		"func (k Kind[P]) Wait() {}":                                                     "it has a kind",
		"func Wait() Family[int] { return f }":                                           "it returns a kind",
		"type Waiter interface {\n// Wait waits for a signal.\nWait(name string)\n}":     "Waiter.Wait needs a directive",
		"type Options struct {\n// When matches signals.\nWhen string\n}":                "Options.When needs a directive",
		"type Options struct {\nWhen []string // patterns\n}":                            "Options.When needs a directive",
		"const SignalUsed = \"used\"\nfunc f(s string) string { return SignalUsed + s }": "its package raises it with more text",
		"var Used = NewKind[int](name())":                                                "is not a constant",
		"//ephemeral:patern\nfunc F() {}":                                                "is not a directive",
		"//ephemeral:pattern {gone}\nfunc F() {}":                                        "there is no {gone}",
	} {
		if _, err := plan(tree(t, code, "")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want an error with %q", code, err, want)
		}
	}
	changes, err := plan(tree(t, "// set waits for a signal.\nfunc wait(name string) {}", ""))
	if err != nil || slices.ContainsFunc([]string{table}, func(name string) bool { return len(changes[name]) > 0 }) {
		t.Errorf("got %v, %v for a name that is not exported", changes, err)
	}
}
