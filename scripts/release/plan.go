package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// checkout is a git repository with a work tree.
type checkout struct{ root string }

func (c checkout) git(ctx context.Context, args ...string) (string, error) {
	out, err := command.Output(ctx, c.root, nil, "git", args...)
	return strings.TrimRight(string(out), "\n"), err
}

// at calls f with a work tree of its own, at a commit or tag. It is removed when f returns, and
// its commits stay in the repository.
func (c checkout) at(ctx context.Context, commit string, f func(work checkout) error) (err error) {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	work := checkout{filepath.Join(dir, "tree")}
	if _, err := c.git(ctx, "worktree", "add", "--quiet", "--detach", work.root, commit); err != nil {
		return err
	}
	defer func() {
		if _, removing := c.git(context.WithoutCancel(ctx), "worktree", "remove", "--force", work.root); err == nil {
			err = removing
		}
	}()
	return f(work)
}

// plan says what is released, and what prevents it.
type plan struct {
	version  string
	base     string // the previous release; "" if there is none
	problems []string
}

func (p *plan) problem(format string, args ...any) {
	p.problems = append(p.problems, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// plan plans a release to the branch of the remote. It fetches from there, and changes nothing
// else. It does not compare the API or run the checks, because they take time.
func (c checkout) plan(ctx context.Context, remote, branch string, candidate bool) (*plan, error) {
	p := new(plan)
	tree, err := repo.Load(os.DirFS(c.root))
	if err != nil {
		return nil, err
	}
	sections, err := repo.Changelog(tree.Text("CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	p.version = sections[0].Version
	if sections[0].Text == "" {
		p.problem("CHANGELOG.md says nothing about %s", p.version)
	}
	if dirty, err := c.git(ctx, "status", "--porcelain"); err != nil {
		return nil, err
	} else if dirty != "" {
		p.problem("the tree is dirty: commit or remove\n%s", dirty)
	}
	if on, err := c.git(ctx, "branch", "--show-current"); err != nil {
		return nil, err
	} else if on != branch {
		p.problem("this is branch %q: releases are made on %s", on, branch)
	}
	if _, err := c.git(ctx, "fetch", "--quiet", "--tags", remote, branch); err != nil {
		p.problem("the branch and the tags of %s cannot be fetched: %v", remote, err)
		return p, nil
	}
	differs, err := c.git(ctx, "rev-list", "--left-right", "--count", "HEAD...FETCH_HEAD")
	if err != nil {
		return nil, err
	}
	var here, there int
	fmt.Sscan(differs, &here, &there)
	if here > 0 {
		p.problem("%s/%s lacks commits that are here: push them, and wait for CI", remote, branch)
	}
	if there > 0 {
		p.problem("%s/%s has commits that are not here: pull them", remote, branch)
	}
	if semver.Prerelease(p.version) != "" {
		p.problem("CHANGELOG.md announces %s: announce the release, and make candidates with -candidate", p.version)
	}
	tags, err := c.git(ctx, "tag", "--list", "core/*")
	number := 1 // of the next candidate
	for tag := range strings.FieldsSeq(tags) {
		v := strings.TrimPrefix(tag, "core/")
		switch n, of := 0, semver.Prerelease(v); {
		case !semver.IsValid(v):
		case of == "" && semver.Compare(v, p.base) > 0:
			p.base = v
		case of != "" && strings.TrimSuffix(v, of) == p.version:
			fmt.Sscanf(of, "-rc.%d", &n)
			number = max(number, n+1)
		}
	}
	if semver.Compare(p.version, p.base) <= 0 {
		p.problem("CHANGELOG.md announces %s, but %s is released", p.version, p.base)
	}
	if candidate {
		p.version += fmt.Sprintf("-rc.%d", number)
	}
	if err := module.CheckPathMajor(p.version, ""); err != nil {
		p.problem("a version from v2 on would have to be part of every module path: %v", err)
	}
	return p, err
}

// commit makes the two commits of a release in a work tree of its own, and shows them. In both, the modules
// require each other at the version that the first heading names. It returns the arguments of
// git that push them: the second commit to the branch, and a tag for each module on the first. A
// candidate has no second commit, and stays off the branch.
func (c checkout) commit(ctx context.Context, p *plan, o options, out io.Writer) ([]string, error) {
	unreleased := func(version string) string { return "## [Unreleased] - " + version }
	released := strings.TrimSuffix(p.version, semver.Prerelease(p.version))
	dated := "## " + p.version + " - " + o.now.UTC().Format(time.DateOnly)
	modules, err := c.edit(ctx, p.version, unreleased(released), dated, "Release "+p.version)
	if err != nil {
		return nil, err
	}
	push, tagged, commits := []string{"push", "--atomic", "--quiet", o.remote}, "HEAD", "--max-count=1"
	if !o.candidate {
		next := following(p.version)
		if _, err := c.edit(ctx, next, dated, unreleased(next)+"\n\n"+dated, "Open "+next); err != nil {
			return nil, err
		}
		push, tagged, commits = append(push, "HEAD:refs/heads/"+o.branch), "HEAD~1", "--max-count=2"
	}
	changes, err := c.git(ctx, "log", "--reverse", commits, "--patch", "--unified=0", "--no-color", "--format=== %s")
	fmt.Fprintf(out, "\n%s\n", changes)
	for _, m := range modules {
		push = append(push, tagged+":refs/tags/"+m.Dir+"/"+p.version)
	}
	return push, err
}

// requirement matches the requirement of a module of the repository in a go.mod file.
var requirement = regexp.MustCompile(`(` + regexp.QuoteMeta(repo.Prefix) + `\S+) v\S+`)

// edit replaces a heading of the changelog, makes all modules require each other at the
// version, and commits that. It returns the published modules.
func (c checkout) edit(ctx context.Context, version, heading, by, message string) ([]*repo.Module, error) {
	tree, err := repo.Load(os.DirFS(c.root))
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{"CHANGELOG.md": bytes.Replace(tree.Text("CHANGELOG.md"), []byte(heading), []byte(by), 1)}
	for _, m := range tree.Modules {
		name := m.Dir + "/go.mod"
		texts[name] = requirement.ReplaceAll(tree.Text(name), []byte("${1} "+version))
	}
	if err := command.WriteFiles(c.root, texts); err != nil {
		return nil, err
	}
	_, err = c.git(ctx, "commit", "--quiet", "--all", "--message="+message)
	return policy.Published(tree), err
}

// following returns the version that is opened after a release: the next minor version.
func following(version string) string {
	var major, minor int
	fmt.Sscanf(version, "v%d.%d.", &major, &minor) // semver.IsValid holds
	return fmt.Sprintf("v%d.%d.0", major, minor+1)
}
