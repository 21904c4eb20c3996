package arch

import (
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repotest"
)

// tree is the text of files by name.
type tree map[string]string

const control = `package core

type Control struct{ *engine }

type engine struct{}

func (*engine) Name() string { return "" }
func (*engine) Sink() *Sink { return nil }

type OperationID uint64
`

const queue = `package retry

import (
	"errors"

	"github.com/ephemeralgo/ephemeral/core"
)

const SignalFailed = "retry.failed"

const SignalStale = "retry.item.stale"

var Failed = signals.NewKind[struct{ n [2]int }](SignalFailed)

var again = signals.NewKind[int](SignalFailed).Raise

type Options struct {
	MaxQueued int
	Sink *core.Sink
}

func (o Options) resolved() (Options, error) { return o, errors.New("retry: it fails") }

type Queue struct{ inner[int] }

type inner[T any] struct{ core.Control }

func New(_ int, opts Options) (*Queue, error) { return nil, opts.Sink.Has(opts.MaxQueued) }

func (q *Queue) Enqueue(item int) (id core.OperationID, err error) { return 0, nil }

type Stats struct{ Begun, Ended, Running int }

func (q *Queue) Stats() Stats { return Stats{} }
`

// sample returns a small tree that keeps all rules.
func sample() tree {
	const (
		mod  = "module github.com/ephemeralgo/ephemeral/"
		core = "\n\ngo 1.26\n\nrequire github.com/ephemeralgo/ephemeral/core v0.1.0\n\nreplace github.com/ephemeralgo/ephemeral/core => "
	)
	more := strings.Repeat("more\n", policy.MinReadmeLines)
	return tree{
		"go.work":         "go 1.26\n\nuse (\n\t./atoms/data\n\t./atoms/data/postgres\n\t./atoms/retry\n\t./core\n\t./demo\n)\n",
		"CHANGELOG.md":    "# Changelog\n\n## [Unreleased] - v0.1.0\n\n- `core`, `atoms/retry`, `data`, `data/postgres`\n",
		"README.md":       "# Ephemeral\n",
		"docs/modules.md": "# Modules\n\n| module |\n|---|\n| [core](../core) |\n| [data](../atoms/data/) |\n| [postgres](../atoms/data/postgres/README.md) |\n| [retry](../atoms/retry) |\n",

		"docs/adr/0001-many-modules.md": "# 1. Many modules\n",
		"docs/words.md":                 "`le" + "st`\n\n```sh\nhe" + "eds\n```\n\nReaders who know it.\n",

		"core/go.mod":             mod + "core\n\ngo 1.26\n",
		"core/doc.go":             "package core\n",
		"core/sink.go":            "package core\n\nimport _ \"time\"\n",
		"core/sink_test.go":       "package core_test\n\nimport (\n\t_ \"github.com/ephemeralgo/ephemeral/core/coretest\"\n\t_ \"testing\"\n)\n",
		"core/example_test.go":    "package core_test\n\nimport \"fmt\"\n\nfunc Example() {\n\tfmt.Println(\"hello\")\n\t// Output: hello\n}\n\nfunc ExampleControl_method() { var _ core.OperationID }\n",
		"core/control.go":         control,
		"core/coretest/expect.go": "package coretest\n\nimport _ \"github.com/ephemeralgo/ephemeral/core\"\n",
		"core/README.md":          "# core\n\n<!-- example: core.Example -->\n```go\nfmt.Println(\"hello\")\n```\n",

		"atoms/retry/go.mod":                mod + "atoms/retry" + core + "../../core\n",
		"atoms/retry/doc.go":                "package retry\n",
		"atoms/retry/retry.go":              "package retry\n\nimport _ \"github.com/ephemeralgo/ephemeral/core\"\n",
		"atoms/retry/queue.go":              queue,
		"atoms/retry/example_queue_test.go": "package retry_test\n\nfunc ExampleQueue() {\n\tretry.New(retry.Options{}).Stats()\n}\n",
		"atoms/retry/retry_test.go":         "package retry\n",
		"atoms/retry/example_test.go":       "package retry_test\n",
		"atoms/retry/README.md":             "# retry\n`retry.failed`, `.stale`\n" + more,

		"atoms/data/go.mod":          mod + "atoms/data" + core + "../../core\n",
		"atoms/data/doc.go":          "package data\n",
		"atoms/data/data.go":         "package data\n\nimport _ \"github.com/ephemeralgo/ephemeral/core\"\n",
		"atoms/data/data_test.go":    "package data\n",
		"atoms/data/example_test.go": "package data_test\n",
		"atoms/data/README.md":       "# data" + more,

		"atoms/data/postgres/go.mod": mod + "atoms/data/postgres\n\ngo 1.26\n\nrequire (\n" +
			"\tgithub.com/ephemeralgo/ephemeral/atoms/data v0.1.0\n\tgithub.com/ephemeralgo/ephemeral/core v0.1.0\n" +
			"\tgithub.com/jackc/puddle/v2 v2.2.3 // indirect\n\tgithub.com/jackc/pgx/v5 v5.2.3\n)\n\n" +
			"replace github.com/ephemeralgo/ephemeral/core => ../../../core\n\nreplace github.com/ephemeralgo/ephemeral/atoms/data => ..\n",
		"atoms/data/postgres/doc.go":           "package postgres\n",
		"atoms/data/postgres/postgres.go":      "package postgres\n\nimport (\n\t_ \"github.com/ephemeralgo/ephemeral/atoms/data\"\n\t_ \"github.com/jackc/pgx/v5\"\n)\n",
		"atoms/data/postgres/postgres_test.go": "package postgres\n",
		"atoms/data/postgres/example_test.go":  "package postgres_test\n",
		"atoms/data/postgres/README.md":        "# postgres\n" + more,

		"demo/go.mod":    mod + "demo" + core + "../core\n",
		"demo/main.go":   "package main\n\nimport _ \"github.com/ephemeralgo/ephemeral/core\"\n\nfunc main() {}\n",
		"demo/README.md": "# demo\n",
	}
}

func (tr tree) load(t *testing.T) *repo.Tree {
	t.Helper()
	return repotest.Load(t, tr)
}

// replace returns a function that replaces a piece of a file. The piece must be there.
func replace(name, old, new string) func(tree) {
	return func(tr tree) {
		if !strings.Contains(tr[name], old) {
			panic(name + " does not contain " + old)
		}
		tr[name] = strings.Replace(tr[name], old, new, 1)
	}
}

func add(name, text string) func(tree) { return func(tr tree) { tr[name] += text } }

func remove(name string) func(tree) { return func(tr tree) { delete(tr, name) } }

func importing(path string) string {
	return "import _ \"" + strings.Replace(path, "EPHEMERAL/", repo.Prefix, 1) + "\"\n"
}

// rule returns the rule with the name.
func rule(t *testing.T, name string) Rule {
	t.Helper()
	i := slices.IndexFunc(Rules, func(r Rule) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("there is no rule %q", name)
	}
	return Rules[i]
}

func TestSampleKeepsAllRules(t *testing.T) {
	loaded := sample().load(t)
	for _, rule := range Rules {
		for _, v := range rule.Violations(loaded, nil) {
			t.Errorf("%s: %v", rule.Name, v)
		}
	}
}

func TestRulesNoticeABrokenTree(t *testing.T) {
	const slash = "/"
	tests := []struct {
		rule  string
		name  string
		spoil func(tree)
		want  string // in the violation
	}{
		{"workspace", "module missing in go.work", replace("go.work", "\t./demo\n", ""), "go work use ./demo"},

		{"module path", "other name", replace("atoms/retry/go.mod", "atoms/retry", "atoms/retries"), "module github.com/ephemeralgo/ephemeral/atoms/retry"},
		{"module path", "no place", add("tools/go.mod", "module github.com/ephemeralgo/ephemeral/tools\n"), "no kind of module"},

		{"imports", "atom imports atom", add("atoms/retry/retry.go", importing("EPHEMERAL/atoms/data")), "atoms/retry may not use atoms/data"},
		{"imports", "atom imports atom in a test", add("atoms/retry/retry_test.go", importing("EPHEMERAL/atoms/data")), "atoms/retry may not use atoms/data"},
		{"imports", "contract imports store", add("atoms/data/data.go", importing("EPHEMERAL/atoms/data/postgres")), "atoms/data may not use atoms/data/postgres"},
		{"imports", "core imports atom", add("core/sink_test.go", importing("EPHEMERAL/atoms/retry")), "core may not use atoms/retry"},
		{"imports", "somebody imports demo", add("atoms/retry/retry.go", importing("EPHEMERAL/demo")), "may not use demo"},
		{"imports", "no such module", add("atoms/retry/retry.go", importing("EPHEMERAL/atoms/gone")), "no module provides"},

		{"libraries", "atom imports library", add("atoms/retry/retry.go", importing("modernc.org/sqlite")), "atoms/retry/retry.go: imports modernc.org/sqlite"},
		{"libraries", "library of a like name", add("atoms/data/postgres/postgres.go", importing("github.com/jackc/pgx/v52")), "imports github.com/jackc/pgx/v52"},
		{"libraries", "testify outside a test", add("atoms/retry/retry.go", importing("github.com/stretchr/testify/require")), "atoms/retry/retry.go: imports github.com/stretchr"},
		{"libraries", "library of tests outside a test", func(tr tree) {
			tr["patterns/telemetry/go.mod"] = "module github.com/ephemeralgo/ephemeral/patterns/telemetry\n\ngo 1.26\n"
			tr["patterns/telemetry/telemetry.go"] = "package telemetry\n\n" + importing("go.opentelemetry.io/otel/sdk/trace")
		}, "imports go.opentelemetry.io/otel/sdk/trace"},
		{"libraries", "testify in core", add("core/sink_test.go", importing("github.com/stretchr/testify/require")), "core/sink_test.go: imports github.com/stretchr"},

		{"internal", "root package imports small package", add("core/sink.go", importing("EPHEMERAL/core/lru")), "core/sink.go: imports github.com/ephemeralgo/ephemeral/core/lru"},

		{"internal", "leaf imports root package", add("core/bucket/bucket.go", "package bucket\n"+importing("EPHEMERAL/core")), "core/bucket/bucket.go: imports"},

		{"internal", "atom uses coretest", add("atoms/retry/retry.go", importing("EPHEMERAL/core/coretest")), "outside a test"},
		{"internal", "core uses coretest", add("core/lru/lru.go", "package lru\n"+importing("EPHEMERAL/core/coretest")), "core/lru/lru.go"},

		{"internal", "store uses internals of the contract", add("atoms/data/postgres/postgres.go", importing("EPHEMERAL/atoms/data/internal/file")), "of module atoms/data"},

		{"requirements", "core requires something", add("core/go.mod", "require golang.org/x/sync v0.1.0\n"), "core/go.mod: requires golang.org/x/sync"},
		{"requirements", "core requires something indirectly", add("core/go.mod", "require golang.org/x/sync v0.1.0 // indirect\n"), "core/go.mod: requires golang.org/x/sync"},
		{"requirements", "atom requires atom", add("atoms/retry/go.mod", "require github.com/ephemeralgo/ephemeral/atoms/data v0.1.0\n"), "requires github.com/ephemeralgo/ephemeral/atoms/data"},
		{"requirements", "atom requires library", add("atoms/retry/go.mod", "require golang.org/x/sync v0.1.0\n"), "requires golang.org/x/sync"},
		{"requirements", "atom requires library indirectly", add("atoms/retry/go.mod", "require golang.org/x/sync v0.1.0 // indirect\n"), "requires golang.org/x/sync"},
		{"requirements", "no such module", add("atoms/retry/go.mod", "require github.com/ephemeralgo/ephemeral/atoms/gone v0.1.0\n"), "there is no such module"},
		{"requirements", "idle exception", replace("atoms/data/postgres/go.mod", "\tgithub.com/jackc/pgx/v5 v5.2.3\n", ""), "remove the exception"},

		{"replacements", "missing", replace("atoms/data/postgres/go.mod", "replace github.com/ephemeralgo/ephemeral/atoms/data => ..", ""), "add: replace github.com/ephemeralgo/ephemeral/atoms/data => .."},
		{"replacements", "wrong depth", replace("atoms/retry/go.mod", "../../core", "../core"), "do: add: replace github.com/ephemeralgo/ephemeral/core => ../../core"},
		{"replacements", "not required", add("demo/go.mod", "replace github.com/ephemeralgo/ephemeral/atoms/retry => ../atoms/retry\n"), "replaces github.com/ephemeralgo/ephemeral/atoms/retry => ../atoms/retry"},
		{"replacements", "from outside", add("demo/go.mod", "replace golang.org/x/sync => ../sync\n"), "remove the line: only modules of this repository"},
		{"replacements", "one version only", replace("atoms/retry/go.mod", "core =>", "core v0.1.0 =>"), "do: add: replace github.com/ephemeralgo/ephemeral/core => ../../core"},

		{"go directive", "older", replace("core/go.mod", "go 1.26", "go 1.25"), "core/go.mod: has another go directive"},
		{"go directive", "none", replace("core/go.mod", "go 1.26", ""), "core/go.mod: has another go directive"},
		{"go directive", "workspace", replace("go.work", "go 1.26", "go 1.26.1"), "go.work: has another go directive"},
		{"go directive", "another release", replace("atoms/data/postgres/go.mod", "go 1.26", "go 1.26.1"), "has another go directive"},
		{"go directive", "toolchain", add("demo/go.mod", "toolchain go1.26.1\n"), "toolchain"},

		{"versions", "left behind", replace("CHANGELOG.md", "v0.1.0", "v0.2.0"), "require github.com/ephemeralgo/ephemeral/core v0.2.0"},
		{"versions", "no version", replace("CHANGELOG.md", " - v0.1.0", ""), "exactly one heading"},
		{"versions", "not a version", replace("CHANGELOG.md", "v0.1.0", "0.1"), "not a version"},
		{"versions", "no changelog", remove("CHANGELOG.md"), "CHANGELOG.md"},

		{"files", "no doc", remove("core/doc.go"), "core: has no doc.go"},
		{"files", "no example", remove("core/example_test.go"), "core: has no example*_test.go"},
		{"files", "no main file", remove("atoms/retry/retry.go"), "atoms/retry: has no retry.go"},
		{"files", "no tests", remove("atoms/data/postgres/postgres_test.go"), "atoms/data/postgres: has no postgres_test.go"},
		{"files", "no readme", remove("demo/README.md"), "demo: has no README.md"},

		{"package names", "other name", replace("atoms/retry/doc.go", "retry", "retries"), "atoms/retry/doc.go: is package retries"},
		{"package names", "other test name", replace("atoms/retry/example_test.go", "retry_test", "example_test"), "is package example"},
		{"package names", "command in an atom", add("atoms/retry/cmd/main.go", "package main\n"), "is package main"},

		{"readme length", "atom", add("atoms/retry/README.md", strings.Repeat("long\n", 100)), "80 are allowed"},
		{"readme length", "short", replace("atoms/data/README.md", "more\n", ""), "atoms/data/README.md: is 19 lines long, too short"},
		{"readme length", "root", add("README.md", strings.Repeat("long\n", 400)), "160 are allowed"},

		{"readme snippets", "no marker", replace("core/README.md", "<!-- example: core.Example -->", ""), "core/README.md:4: a Go block that is not a compiled example"},

		{"modules page", "no row", replace("docs/modules.md", "| [retry](../atoms/retry) |\n", ""), "no row of a table links atoms/retry"},
		{"modules page", "link outside a table", replace("docs/modules.md", "| [retry](../atoms/retry) |\n", "[retry](../atoms/retry)\n"), "no row of a table links atoms/retry"},
		{"modules page", "no page", remove("docs/modules.md"), "docs/modules.md"},
		{"modules page", "long front page", add("README.md", strings.Repeat("word ", 1300)), "1200 are allowed"},

		{"links", "no file", add("docs/a.md", "See [b](b.md#c).\n"), "docs/a.md: links docs/b.md"},

		{"words", "in Markdown", add("docs/a.md", "One.\nTwo he"+"eds it.\n"), "docs/a.md:2: he" + "eds\n\tdo: write: follow"},
		{"words", "on two lines", add("demo/a.go", "package main\n\n// All of those\n// who"+" wait.\nvar x int\n"), "demo/a.go:3: those " + "who wait"},
		{"words", "second sentence", add("demo/a.go", "package main\n\n/* One.\nWho"+" comes\n*/\nvar x int\n"), "demo/a.go:4: who" + " comes"},
		{"words", "list", add("docs/a.md", "- who"+" has it\n"), "docs/a.md:1: who" + " has"},
		{"words", "in a string", add("demo/a.go", "package main\n\nvar x = \"th"+"us\"\n"), "demo/a.go:3: th" + "us"},
		{"words", "after code", add("docs/a.md", "```go\nx()\n```\nand `y\nz` as one"+" cut\n"), "docs/a.md:5: as one"},

		{"options", "not resolved", replace("atoms/retry/queue.go", "resolved", "validate"), "retry.Options has no method resolved"},
		{"options", "other name", replace("atoms/retry/queue.go", "MaxQueued", "MaxPending"), "queue.go:18: retry.Options.MaxPending has a name of its own\n\tdo: call it MaxQueued"},

		{"signal names", "upper case", replace("atoms/retry/queue.go", "retry.failed", "Retry.failed"), "Retry.failed is not in lower case"},
		{"signal names", "present", replace("atoms/retry/queue.go", "retry.failed", "retry.fail"), "retry.fail does not end in a past tense"},
		{"signal names", "a kind", add("atoms/retry/x.go", "package retry\n\nvar Lost = NewKind[int](\"retry.lose\")\n"), "retry.lose does not end in a past tense"},
		{"signal names", "not in the README", replace("atoms/retry/README.md", ".stale", ".lost"), "retry.item.stale is not in the README"},

		{"one name", "two constants", add("core/x.go", "package core\n\nconst SignalLost = \"retry.failed\"\n"), "retry.failed is a name of "},
		{"one name", "a command", add("core/x.go", "package core\n\nconst CommandFail = \"retry.failed.\"\n"), "retry.failed is a name of "},
		{"one name", "a kind", add("core/x.go", "package core\n\nvar Lost = NewKind[int](\"retry.failed\")\n"), "retry.failed is a name of "},
		{"one name", "a family", add("core/x.go", "package core\n\nvar Lost = signals.NewFamily[int](\"x.*, retry.item.*\")\n"), "retry.item.stale is a name of core as well, at core/x.go:3"},

		{"errors", "no package", replace("atoms/retry/queue.go", "retry: it", "it"), "queue.go:22: atoms/retry/queue.go has an error with text \"it fails\""},
		{"errors", "core", add("core/errors.go", "package core\n\nimport \"fmt\"\n\nfunc F() error { return fmt.Errorf(\"wrong: no\") }\n"), "begin it with core: "},

		{"guarded", "text", add("core/x.go", "package core\n\nfunc F(err error) string { return err.Error() }\n"), "core/x.go: calls the method Error"},
		{"guarded", "is", add("core/x.go", "package core\n\nimport \"errors\"\n\nfunc F(err error) bool { return errors.Is(err, nil) }\n"), "core/x.go: calls errors.Is"},
		{"guarded", "type", add("core/x.go", "package core\n\nimport \"errors\"\n\nfunc F(err error) { errors.AsType[error](err) }\n"), "core/x.go: calls errors.AsType"},
		{"examples", "none", replace("core/example_test.go", "Control_method", "Sink"), "core.Control is in no example"},
		{"examples", "result", replace("atoms/retry/example_queue_test.go", ".Stats()", ""), "retry.Stats is in no example"},

		{"private places", "registry", add("docs/setup.md", "export GOPROXY=https://proxy."+"golang.org\n"), "docs/setup.md:1"},
		{"private places", "machine path", add(".ci/run", "cd "+slash+"work/main\n"), ".ci/run:1"},
		{"private places", "home", add("demo/main.go", "// see "+slash+"home/me/notes\n"), "demo/main.go:6"},
	}
	tried := map[string]bool{}
	for _, test := range tests {
		tried[test.rule] = true
		t.Run(test.rule+"/"+test.name, func(t *testing.T) {
			tr := sample()
			test.spoil(tr)
			vs := rule(t, test.rule).Violations(tr.load(t), nil)
			if !slices.ContainsFunc(vs, func(v string) bool { return strings.Contains(v, test.want) }) {
				t.Errorf("got violations %v\nwant one with %q", vs, test.want)
			}
		})
	}
	for _, rule := range Rules {
		if !tried[rule.Name] {
			t.Errorf("no broken tree for rule %q", rule.Name)
		}
		if rule.Reason == "" {
			t.Errorf("rule %q has no reason", rule.Name)
		}
	}
}

// An exception allows one name, and is reported once nothing needs it.
func TestExceptions(t *testing.T) {
	tr := sample()
	replace("atoms/retry/queue.go", "retry.failed", "retry.fail")(tr)
	replace("atoms/retry/queue.go", "retry.item.stale", "retry.item.fail")(tr)
	got := rule(t, "signal names").Violations(tr.load(t), []policy.Exception{
		{Rule: "signal names", Name: "retry.fail"},
		{Rule: "signal names", Name: "retry.gone"},
		{Rule: "options", Name: "retry.item.fail"},
	})
	if len(got) != 2 || !strings.Contains(got[0], "retry.item.fail does not end") || !strings.Contains(got[1], "retry.gone: is an exception that nothing needs") {
		t.Errorf("got %q", got)
	}
	for _, x := range policy.Exceptions {
		if rule(t, x.Rule); x.Reason == "" {
			t.Errorf("the exception of %s for %s has no reason", x.Rule, x.Name)
		}
	}
}

// A library may demand the first release of the language version.
func TestGoDirectiveFollowsLibraries(t *testing.T) {
	tr := sample()
	replace("atoms/data/postgres/go.mod", "go 1.26", "go 1.26.0")(tr)
	replace("go.work", "go 1.26", "go 1.26.0")(tr)
	for _, v := range rule(t, "go directive").Violations(tr.load(t), nil) {
		t.Error(v)
	}
}

// The paths look like private paths, but are not.
func TestPrivatePlacesLeavesOthersAlone(t *testing.T) {
	tr := sample()
	tr["docs/links.md"] = "see https://pkg.go.dev/golang.org/x/sync, ./core/work/list.go and https://example.com/work/list\n"
	tr["demo/data.bin"] = "\x00/" + "work/"
	for _, v := range rule(t, "private places").Violations(tr.load(t), nil) {
		t.Error(v)
	}
}
