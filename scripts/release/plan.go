package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// state is everything that the plan of a release depends on.
type state struct {
	remote, branch string // where it goes
	today          string // like 2026-01-31

	files    map[string]string // the texts of CHANGELOG.md and of every go.mod
	sections []repo.Section    // of CHANGELOG.md
	modules  []string          // directories of the published modules, in the order of their tags
	dirty    string            // output of git status
	on       string            // the branch that is checked out
	head     string            // its commit
	tags     map[string]string // commits by tag
	last     *past             // the release of the newest section with a date; nil if there is none

	unreachable error             // why the remote does not answer; then refs has the refs of this repository
	refs        map[string]string // commits of the remote by the full names of branches and tags
	diverged    bool              // the branch of the remote has commits that head has not
}

// past is a release that was made, or interrupted.
type past struct {
	version string
	commit  string // "" if it was not found
	modules []string
}

// plan lists the steps of a release, and the problems that prevent it.
type plan struct {
	version  string
	base     string // the previous release; "" if there is none
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

// newPlan plans the rest of a release that was interrupted, or else the next release. It does
// not compare the API or run the checks, because they take time.
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
		const do = "pull them, or if a release was interrupted before its first tag"
		p.problem("%s/%s has commits that are not here: %s: git reset --hard %[1]s/%[2]s", s.remote, s.branch, do)
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

// complete reports whether every tag of the release is on its commit, here and at the remote.
func (s *state) complete(r *past) bool {
	return !slices.ContainsFunc(r.modules, func(dir string) bool {
		tag := dir + "/" + r.version
		return s.tags[tag] != r.commit || s.refs["refs/tags/"+tag] != r.commit
	})
}

// begin plans a release from its start: two commits. The first is tagged. The second makes
// the modules require each other at the next version. In both commits the modules require
// the version in the changelog.
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
		p.problem("%s/%s lacks commits that are here: push them, and wait for CI", s.remote, s.branch)
	}
	for _, ref := range slices.Sorted(maps.Keys(s.refs)) {
		if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok && strings.HasPrefix(tag, "core/") && s.tags[tag] == "" {
			p.problem("%s has tag %s: git fetch --tags %[1]s", s.remote, tag)
		}
	}

	p.edit(s, p.version, unreleased(p.version), "## "+p.version+" - "+s.today)
	p.git("commit", "--all", "--message="+subject(p.version))
	p.open(s)
	p.push(s, &past{p.version, "HEAD~1", s.modules}, true)
}

// resume plans the rest of a release whose commit was made.
func (p *plan) resume(s *state) {
	p.resumed, p.version = true, s.last.version
	if s.last.commit == "" {
		p.problem("CHANGELOG.md dates %s, but there is no commit %q on this branch, and no tag core/%[1]s: is the history complete?",
			p.version, subject(p.version))
		return
	}
	opens := s.sections[0].Date != ""
	if opens {
		p.open(s)
	}
	p.push(s, s.last, opens || s.refs["refs/heads/"+s.branch] != s.head)
}

// open plans the commit that opens the version after p.version.
func (p *plan) open(s *state) {
	after := following(p.version)
	p.edit(s, after, "## "+p.version, unreleased(after)+"\n\n## "+p.version)
	p.git("commit", "--all", "--message=Open "+after)
}

// push plans to push the branch, if that is needed, and then to make and push the missing
// tags, module by module. A module comes after the modules it requires.
func (p *plan) push(s *state, r *past, branch bool) {
	if branch {
		p.git("push", s.remote, "HEAD:refs/heads/"+s.branch)
	}
	for _, dir := range r.modules {
		tag := dir + "/" + r.version
		ref := "refs/tags/" + tag
		here, there := s.tags[tag], s.refs[ref]
		if here != "" && here != r.commit {
			const do = "if it was pushed, release a later version; otherwise delete it with git tag --delete"
			p.problem("tag %s is on another commit, %s: %s", tag, here, do)
		}
		if there != "" && there != r.commit {
			p.problem("tag %s is on another commit at %s, %s: release a later version", tag, s.remote, there)
		}
		if here == "" {
			p.git("tag", "--annotate", "--message="+dir+" "+r.version, tag, r.commit)
		}
		if there == "" {
			p.git("push", s.remote, ref)
		}
	}
}

func (p *plan) git(command ...string) { p.steps = append(p.steps, step{git: command}) }

// requirement matches the requirement of a module of the repository in a go.mod file.
var requirement = regexp.MustCompile(`(` + regexp.QuoteMeta(repo.Prefix) + `\S+) v\S+`)

// edit plans to replace a heading of the changelog, and to make all modules require each
// other at the version.
func (p *plan) edit(s *state, version, heading, by string) {
	var edits []edit
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		before := s.files[name]
		after := requirement.ReplaceAllString(before, "${1} "+version)
		if name == "CHANGELOG.md" {
			after = strings.Replace(before, heading, by, 1)
		}
		if after != before {
			edits = append(edits, edit{name, before, after})
			s.files[name] = after
		}
	}
	p.steps = append(p.steps, step{edits: edits})
}

// subject returns the first line of the message of the commit that is tagged.
func subject(version string) string { return "Release " + version }

// unreleased returns the heading of the section about the version, before its release.
func unreleased(version string) string { return "## [Unreleased] - " + version }

// following returns the version that is opened after a release: the next minor version, or
// after a pre-release the version itself.
func following(version string) string {
	if pre := semver.Prerelease(version); pre != "" {
		return strings.TrimSuffix(version, pre)
	}
	var major, minor int
	fmt.Sscanf(version, "v%d.%d.", &major, &minor) // semver.IsValid holds
	return fmt.Sprintf("v%d.%d.0", major, minor+1)
}

// tagged returns the directories of published modules, in the order in which they are
// tagged. Package policy lists a kind of modules after the kinds that it may use.
func tagged(dirs []string) []string {
	rank := func(dir string) int {
		return slices.IndexFunc(policy.Kinds, func(k policy.Kind) bool { return k.Pattern == policy.KindOf(dir).Pattern })
	}
	dirs = slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool { return !policy.KindOf(dir).Published })
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) })
	return dirs
}
