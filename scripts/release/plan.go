package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// state is all that a release is planned from.
type state struct {
	remote, branch string // where it goes
	today          string // like 2026-01-31

	files    map[string]string // the texts of CHANGELOG.md and of every go.mod
	sections []repo.Section    // of CHANGELOG.md
	modules  []string          // directories of the published modules, in the order of their tags
	dirty    string            // what git status says
	on       string            // the branch that is checked out
	head     string            // its commit
	tags     map[string]string // commits by tag
	last     *past             // what the newest section with a date is about; nil if there is none

	unreachable error             // why the remote does not answer; what is here then stands for what is there
	refs        map[string]string // commits of the remote by the full names of branches and tags
	diverged    bool              // the branch of the remote has commits that head has not
}

// past is a release that has at least been begun.
type past struct {
	version string
	commit  string // "" if it is not to be found
	modules []string
}

// plan says what a release consists of, and what stands against it.
type plan struct {
	version  string
	base     string // the last release before it; "" if it is the first
	resumed  bool   // an earlier run has made its commit
	problems []string
	steps    []step
}

// step is a change of some files, or a git command.
type step struct {
	edits []edit
	git   []string
}

type edit struct{ name, before, after string }

// newPlan plans what is left to do of the release that was begun last, or else the
// next one. The API and the checks are judged elsewhere: they take time.
func newPlan(s *state) *plan {
	p := new(plan)
	if s.dirty != "" {
		p.problem("the tree is dirty: commit or remove\n%s", s.dirty)
	}
	if s.on != s.branch {
		p.problem("this is branch %q: releases are made on %s", s.on, s.branch)
	}
	switch {
	case s.unreachable != nil:
		p.problem("%s does not answer: %v", s.remote, s.unreachable)
	case s.diverged:
		p.problem("%s/%s has commits that are not here: pull them, or if this is a release that was interrupted before its first tag: git reset --hard %[1]s/%[2]s",
			s.remote, s.branch)
	}
	if s.last != nil && (s.last.commit == "" || s.sections[0].Date != "" || !s.complete(s.last)) {
		p.resume(s)
	} else {
		p.begin(s)
	}
	return p
}

func (p *plan) problem(format string, args ...any) {
	p.problems = append(p.problems, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// complete reports whether every tag of the release is where it belongs, here and there.
func (s *state) complete(r *past) bool {
	return !slices.ContainsFunc(r.modules, func(dir string) bool {
		tag := dir + "/" + r.version
		return s.tags[tag] != r.commit || s.refs["refs/tags/"+tag] != r.commit
	})
}

// begin plans a release from its start: two commits, of which the first is tagged.
// The second makes the modules require each other at the version after it, so that
// the rule that they require the version in the changelog holds in both.
func (p *plan) begin(s *state) {
	next := s.sections[0]
	p.version = next.Version
	for tag := range s.tags {
		if v, ok := strings.CutPrefix(tag, "core/"); ok && semver.IsValid(v) && semver.Compare(v, p.base) > 0 {
			p.base = v
		}
	}
	if next.Text == "" {
		p.problem("CHANGELOG.md says nothing about %s", p.version)
	}
	if err := module.CheckPathMajor(p.version, ""); err != nil {
		p.problem("a version from v2 on would have to be part of every module path: %v", err)
	}
	if semver.Compare(p.version, p.base) <= 0 {
		p.problem("CHANGELOG.md announces %s, but %s is released", p.version, p.base)
	}
	if s.unreachable == nil && !s.diverged && s.refs["refs/heads/"+s.branch] != s.head {
		p.problem("%s/%s does not have all that is here: push it, and let CI see it", s.remote, s.branch)
	}
	for _, ref := range slices.Sorted(maps.Keys(s.refs)) {
		if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok && strings.HasPrefix(tag, "core/") && s.tags[tag] == "" {
			p.problem("%s has tag %s: git fetch --tags %[1]s", s.remote, tag)
		}
	}

	released, err := edits(s.files, p.version, func(changelog string) string {
		return strings.Replace(changelog, unreleased(p.version), "## "+p.version+" - "+s.today, 1)
	})
	if err != nil {
		p.problem("%v", err)
		return
	}
	p.edit(released)
	p.git("commit", "--all", "--message="+subject(p.version))
	for _, e := range released {
		s.files[e.name] = e.after
	}
	p.open(s)
	p.push(s, &past{p.version, "HEAD~1", s.modules}, true)
}

// resume plans the rest of a release whose commit is there.
func (p *plan) resume(s *state) {
	p.resumed, p.version = true, s.last.version
	if s.last.commit == "" {
		p.problem("CHANGELOG.md dates %s, but no commit on this branch is called %q, and no tag core/%[1]s is here: is the history complete?", p.version, subject(p.version))
		return
	}
	opens := s.sections[0].Date != ""
	if opens {
		p.open(s)
	}
	p.push(s, s.last, opens || s.refs["refs/heads/"+s.branch] != s.head)
}

// open plans the commit that begins the work on the version after p.version.
func (p *plan) open(s *state) {
	after := following(p.version)
	opened, err := edits(s.files, after, func(changelog string) string {
		return strings.Replace(changelog, "## "+p.version, unreleased(after)+"\n\n## "+p.version, 1)
	})
	if err != nil {
		p.problem("%v", err)
		return
	}
	p.edit(opened)
	p.git("commit", "--all", "--message=Open "+after)
}

// push plans to push the branch, if it has to be, and then to tag each module where
// it is not yet tagged and to push the tag, after those of the modules it requires.
func (p *plan) push(s *state, r *past, branch bool) {
	if branch {
		p.git("push", s.remote, "HEAD:refs/heads/"+s.branch)
	}
	for _, dir := range r.modules {
		tag := dir + "/" + r.version
		ref := "refs/tags/" + tag
		here, there := s.tags[tag], s.refs[ref]
		if here != "" && here != r.commit {
			p.problem("tag %s is on another commit, %s: if it was never pushed, git tag --delete %[1]s; if it was, release a later version", tag, here)
		}
		if there != "" && there != r.commit {
			p.problem("tag %s is on another commit at %s, %s: a version is for ever, so release a later one", tag, s.remote, there)
		}
		if here == "" {
			p.git("tag", "--annotate", "--message="+dir+" "+r.version, tag, r.commit)
		}
		if there == "" {
			p.git("push", s.remote, ref)
		}
	}
}

func (p *plan) edit(edits []edit)     { p.steps = append(p.steps, step{edits: edits}) }
func (p *plan) git(command ...string) { p.steps = append(p.steps, step{git: command}) }

// subject returns the first line of the message of the commit that is tagged.
func subject(version string) string { return "Release " + version }

// unreleased returns the heading of the section about the version, before its release.
func unreleased(version string) string { return "## [Unreleased] - " + version }

// following returns the version that is opened once the given one is released: the
// next minor version, or what a pre-release leads to.
func following(version string) string {
	if pre := semver.Prerelease(version); pre != "" {
		return strings.TrimSuffix(version, pre)
	}
	var major, minor int
	fmt.Sscanf(version, "v%d.%d.", &major, &minor) // semver.IsValid holds
	return fmt.Sprintf("v%d.%d.0", major, minor+1)
}

// edits returns what changes the changelog by the function, and lets all modules
// require each other at the version.
func edits(files map[string]string, version string, changelog func(string) string) ([]edit, error) {
	var all []edit
	for _, name := range slices.Sorted(maps.Keys(files)) {
		before := files[name]
		after := before
		if name == "CHANGELOG.md" {
			after = changelog(before)
		} else {
			var err error
			if after, err = require(name, before, version); err != nil {
				return nil, err
			}
		}
		if after != before {
			all = append(all, edit{name, before, after})
		}
	}
	return all, nil
}

// require returns the go.mod file with the modules of the repository required at
// the version. Replacements stay: nobody but the main module heeds them.
func require(name, text, version string) (string, error) {
	mod, err := modfile.Parse(name, []byte(text), nil)
	if err != nil {
		return "", err
	}
	changed := false
	for _, r := range mod.Require {
		if strings.HasPrefix(r.Mod.Path, repo.Prefix) && r.Mod.Version != version {
			changed = true
			if err := mod.AddRequire(r.Mod.Path, version); err != nil {
				return "", err
			}
		}
	}
	if !changed {
		return text, nil
	}
	formatted, err := mod.Format()
	return string(formatted), err
}

// tagged returns those of the directories that are published as modules, in the order
// in which they are tagged: policy lists a kind of modules after those it may use.
func tagged(dirs []string) []string {
	rank := func(dir string) int {
		return slices.IndexFunc(policy.Kinds, func(k policy.Kind) bool { return k.Pattern == policy.KindOf(dir).Pattern })
	}
	dirs = slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		kind := policy.KindOf(dir)
		return kind == nil || !kind.Published
	})
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) })
	return dirs
}
