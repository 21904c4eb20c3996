package main

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

const (
	prefix = "github.com/ephemeralgo/ephemeral/"
	goMod  = "module " + prefix + "atoms/retry\n\ngo 1.26\n\nrequire " + prefix + "core v0.2.0\n\nreplace " + prefix + "core => ../../core\n"
)

// ready returns the state of a tree from which v0.2.0 can be released, after v0.1.0.
func ready() *state {
	return &state{
		remote: "origin",
		branch: "main",
		today:  "2026-01-31",
		files: map[string]string{
			"CHANGELOG.md":       "# Changelog\n\n## [Unreleased] - v0.2.0\n\n- news\n\n## v0.1.0 - 2026-01-01\n\n- all\n",
			"core/go.mod":        "module " + prefix + "core\n\ngo 1.26\n",
			"atoms/retry/go.mod": goMod,
		},
		sections: []repo.Section{{Version: "v0.2.0", Text: "- news"}, {Version: "v0.1.0", Date: "2026-01-01", Text: "- all"}},
		modules:  []string{"core", "atoms/retry"},
		on:       "main",
		head:     "h",
		tags:     map[string]string{"core/v0.1.0": "r", "atoms/retry/v0.1.0": "r"},
		refs:     map[string]string{"refs/heads/main": "h", "refs/tags/core/v0.1.0": "r", "refs/tags/atoms/retry/v0.1.0": "r"},
		last:     &past{version: "v0.1.0", commit: "r", modules: []string{"core", "atoms/retry"}},
	}
}

// lines returns the steps as text: git commands, and the lines that edits add.
func lines(steps []step) []string {
	var all []string
	for _, s := range steps {
		if s.git != nil {
			all = append(all, s.String())
		}
		for _, e := range s.edits {
			before := strings.Split(e.before, "\n")
			for line := range strings.SplitSeq(e.after, "\n") {
				if line != "" && !slices.Contains(before, line) {
					all = append(all, e.name+": "+strings.TrimSpace(line))
				}
			}
		}
	}
	return all
}

func TestPlan(t *testing.T) {
	const (
		pushBranch = "$ git push origin HEAD:refs/heads/main"
		pushCore   = "$ git push origin refs/tags/core/v0.2.0"
		pushRetry  = "$ git push origin refs/tags/atoms/retry/v0.2.0"
	)
	commits := []string{
		"CHANGELOG.md: ## v0.2.0 - 2026-01-31",
		"$ git commit --all '--message=Release v0.2.0'",
		"CHANGELOG.md: ## [Unreleased] - v0.3.0",
		"atoms/retry/go.mod: require " + prefix + "core v0.3.0",
		"$ git commit --all '--message=Open v0.3.0'",
		pushBranch,
	}
	tagCore := func(at string) string {
		return "$ git tag --annotate '--message=core v0.2.0' core/v0.2.0 " + at
	}
	tagRetry := func(at string) string {
		return "$ git tag --annotate '--message=atoms/retry v0.2.0' atoms/retry/v0.2.0 " + at
	}
	// begun changes the state to the state after an interrupted run.
	begun := func(opened bool, head string) func(*state) {
		return func(s *state) {
			s.sections = []repo.Section{{Version: "v0.2.0", Date: "2026-01-31"}}
			s.files["CHANGELOG.md"] = "## v0.2.0 - 2026-01-31\n\n- news\n"
			if opened {
				s.sections = append([]repo.Section{{Version: "v0.3.0"}}, s.sections...)
			}
			s.head = head
			s.last = &past{version: "v0.2.0", commit: "c", modules: s.modules}
		}
	}
	tests := []struct {
		name  string
		given func(*state)
		want  []string
	}{
		{"next", func(*state) {}, append(slices.Clone(commits), tagCore("'HEAD~1'"), pushCore, tagRetry("'HEAD~1'"), pushRetry)},
		{
			"go.mod left behind",
			func(s *state) { s.files["atoms/retry/go.mod"] = strings.Replace(goMod, "v0.2.0", "v0.1.0", 1) },
			slices.Concat(commits[:1], []string{"atoms/retry/go.mod: require " + prefix + "core v0.2.0"}, commits[1:], []string{tagCore("'HEAD~1'"), pushCore, tagRetry("'HEAD~1'"), pushRetry}),
		},
		{
			"first",
			func(s *state) {
				s.sections, s.tags, s.refs, s.last = s.sections[:1], nil, map[string]string{"refs/heads/main": "h"}, nil
			},
			append(slices.Clone(commits), tagCore("'HEAD~1'"), pushCore, tagRetry("'HEAD~1'"), pushRetry),
		},
		{"after the release commit", begun(false, "c"), append(slices.Clone(commits[2:]), tagCore("c"), pushCore, tagRetry("c"), pushRetry)},
		{"after both commits", begun(true, "o"), []string{pushBranch, tagCore("c"), pushCore, tagRetry("c"), pushRetry}},
		{"after the push", func(s *state) {
			begun(true, "o")(s)
			s.refs["refs/heads/main"] = "o"
		}, []string{tagCore("c"), pushCore, tagRetry("c"), pushRetry}},
		{"after a tag", func(s *state) {
			begun(true, "o")(s)
			s.refs["refs/heads/main"] = "o"
			s.tags["core/v0.2.0"] = "c"
		}, []string{pushCore, tagRetry("c"), pushRetry}},
		{"after the push of a tag", func(s *state) {
			begun(true, "o")(s)
			s.refs["refs/heads/main"] = "o"
			s.tags["core/v0.2.0"], s.refs["refs/tags/core/v0.2.0"] = "c", "c"
		}, []string{tagRetry("c"), pushRetry}},
		{"a module that is newer than the last release", func(s *state) { s.modules = append(s.modules, "patterns/new") },
			append(slices.Clone(commits), tagCore("'HEAD~1'"), pushCore, tagRetry("'HEAD~1'"), pushRetry,
				"$ git tag --annotate '--message=patterns/new v0.2.0' patterns/new/v0.2.0 'HEAD~1'", "$ git push origin refs/tags/patterns/new/v0.2.0")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := ready()
			test.given(s)
			p := newPlan(s)
			if p.version != "v0.2.0" || len(p.problems) > 0 {
				t.Errorf("plans %s, problems %q", p.version, p.problems)
			}
			if got := lines(p.steps); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	next := func(version string) func(*state) { return func(s *state) { s.sections[0].Version = version } }
	tests := []struct {
		name  string
		given func(*state)
		want  string
	}{
		{"dirty tree", func(s *state) { s.dirty = " M core/sink.go" }, "the tree is dirty: commit or remove\n M core/sink.go"},
		{"other branch", func(s *state) { s.on = "feature" }, `this is branch "feature"`},
		{"no branch", func(s *state) { s.on = "" }, `this is branch ""`},
		{"no remote", func(s *state) { s.unreachable = errors.New("no such remote") }, "origin does not answer: no such remote"},
		{"remote is ahead", func(s *state) { s.refs["refs/heads/main"], s.diverged = "x", true }, "has commits that are not here"},
		{"remote is behind", func(s *state) { s.refs["refs/heads/main"] = "g" }, "lacks commits that are here"},
		{"remote is empty", func(s *state) { delete(s.refs, "refs/heads/main") }, "lacks commits that are here"},
		{"tag not fetched", func(s *state) { s.refs["refs/tags/core/v0.1.1"] = "x" }, "git fetch --tags origin"},
		{"nothing to tell", func(s *state) { s.sections[0].Text = "" }, "says nothing about v0.2.0"},
		{"released version", func(s *state) { s.tags["core/v0.2.0"] = "x" }, "announces v0.2.0, but v0.2.0 is released"},
		{"older version", next("v0.0.9"), "announces v0.0.9, but v0.1.0 is released"},
		{"version of a path", next("v2.0.0"), "part of every module path"},
		{"tag of one module", func(s *state) { s.tags["atoms/retry/v0.2.0"] = "x" }, "tag atoms/retry/v0.2.0 is on another commit, x"},
		{"released tag was moved there", func(s *state) { s.refs["refs/tags/core/v0.1.0"] = "x" }, "tag core/v0.1.0 is on another commit at origin, x"},
		{"released tag was moved here", func(s *state) { s.tags["core/v0.1.0"] = "x" }, "tag core/v0.1.0 is on another commit, x"},
		{"history cut off", func(s *state) { s.last.commit = "" }, "is the history complete?"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := ready()
			test.given(s)
			p := newPlan(s)
			if !slices.ContainsFunc(p.problems, func(problem string) bool { return strings.Contains(problem, test.want) }) {
				t.Errorf("got problems %q, want one with %q", p.problems, test.want)
			}
		})
	}
}

func TestPlanComparesWithTheNewestRelease(t *testing.T) {
	s := ready()
	maps.Copy(s.tags, map[string]string{"core/v0.0.9": "q", "core/v0.1.0-rc.1": "p", "core/experiment": "e", "atoms/retry/v0.1.9": "a", "v0.9.0": "v"})
	if p := newPlan(s); p.base != "v0.1.0" {
		t.Errorf("compares with %q", p.base)
	}
}

func TestForbidden(t *testing.T) {
	breaks := []string{"core: New: removed"}
	tests := []struct {
		base, version string
		breaks        []string
		want          string
	}{
		{"v0.1.0", "v0.1.1", nil, ""},
		{"v0.1.0", "v0.1.1", breaks, "need a new minor version"},
		{"v0.1.0", "v0.2.0", breaks, ""},
		{"v0.1.0", "v1.0.0", breaks, ""},
		{"v1.0.0", "v1.1.0", nil, ""},
		{"v1.0.0", "v1.1.0", breaks, "undo them"},
		{"v1.0.0-rc.1", "v1.0.0", breaks, ""},
		{"v0.2.0-rc.1", "v0.2.0", breaks, ""},
	}
	for _, test := range tests {
		got := forbidden(test.base, test.version, test.breaks)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s after %s with %q: got %q, want %q", test.version, test.base, test.breaks, got, test.want)
		}
	}
}

func TestFollowing(t *testing.T) {
	for version, want := range map[string]string{"v0.1.0": "v0.2.0", "v0.9.3": "v0.10.0", "v1.2.3": "v1.3.0", "v1.0.0-rc.1": "v1.0.0"} {
		if got := following(version); got != want {
			t.Errorf("after %s comes %s, want %s", version, got, want)
		}
	}
}

func TestPatched(t *testing.T) {
	for version, want := range map[string]string{"v0.1.0": "v0.1.1", "v1.20.9": "v1.20.10", "v1.0.0-rc.1": "v1.0.0"} {
		if got := patched(version); got != want {
			t.Errorf("a patch of %s is %s, want %s", version, got, want)
		}
	}
}

func TestTagged(t *testing.T) {
	got := tagged([]string{"atoms/data/file", "atoms/zap", "bench", "cmd/tool", "complete", "core", "core/testdata/mod", "atoms/data", "demo", "patterns/ant", "scripts", "."})
	want := []string{"core", "atoms/data", "atoms/zap", "atoms/data/file", "patterns/ant", "cmd/tool", "complete"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// No module of the checkout is tagged before a module that it requires.
func TestTaggedInTheOrderOfRequirements(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, m := range tree.Modules {
		dirs = append(dirs, m.Dir)
	}
	order := tagged(dirs)
	if len(order) != len(policy.Published(tree)) {
		t.Errorf("tags %q", order)
	}
	for i, dir := range order {
		for _, r := range tree.Module(dir).Mod.Require {
			if owner := tree.Owner(r.Mod.Path); owner != nil && !slices.Contains(order[:i], owner.Dir) {
				t.Errorf("%s is tagged before %s, which it requires", dir, owner.Dir)
			}
		}
	}
}
