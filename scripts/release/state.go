package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// checkout is a git repository with a work tree.
type checkout struct{ root string }

func (c checkout) git(ctx context.Context, args ...string) (string, error) {
	out, err := command.Output(ctx, c.root, nil, "git", args...)
	return strings.TrimRight(string(out), "\n"), err
}

// state reads the state that a release to the branch of the remote depends on. It changes nothing.
func (c checkout) state(ctx context.Context, remote, branch string, now time.Time) (*state, error) {
	tree, err := repo.Load(os.DirFS(c.root))
	if err != nil {
		return nil, err
	}
	s := &state{remote: remote, branch: branch, today: now.UTC().Format(time.DateOnly), files: map[string]string{}}
	if s.sections, err = repo.Changelog(tree.Text("CHANGELOG.md")); err != nil {
		return nil, err
	}
	var dirs []string
	s.files["CHANGELOG.md"] = string(tree.Text("CHANGELOG.md"))
	for _, m := range tree.Modules {
		s.files[m.Dir+"/go.mod"] = string(tree.Text(m.Dir + "/go.mod"))
		dirs = append(dirs, m.Dir)
	}
	s.modules = tagged(dirs)
	var errs [4]error
	s.dirty, errs[0] = c.git(ctx, "status", "--porcelain")
	s.on, errs[1] = c.git(ctx, "branch", "--show-current")
	s.head, errs[2] = c.git(ctx, "rev-parse", "HEAD")
	refs, err := c.refs(ctx, "show-ref", "--dereference")
	errs[3] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	s.tags = map[string]string{}
	for ref, commit := range refs {
		if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
			s.tags[tag] = commit
		}
	}
	if s.refs, s.unreachable = c.refs(ctx, "ls-remote", "--quiet", remote); s.unreachable != nil {
		s.refs = refs
	} else if there := s.refs["refs/heads/"+branch]; there != "" {
		_, err := c.git(ctx, "merge-base", "--is-ancestor", there, "HEAD")
		s.diverged = err != nil
	}
	s.last, err = c.past(ctx, s)
	return s, err
}

// refs returns the commits of branches and tags, from a git command that lists them.
func (c checkout) refs(ctx context.Context, args ...string) (map[string]string, error) {
	out, err := c.git(ctx, args...)
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(out) {
		hash, ref, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), "\t", " "), " ")
		// An annotated tag is a separate object. The next line has the commit of the tag.
		refs[strings.TrimSuffix(ref, "^{}")] = hash
	}
	return refs, nil
}

// past returns the release of the newest version that has a date in the changelog.
func (c checkout) past(ctx context.Context, s *state) (*past, error) {
	dated := s.sections
	if dated[0].Date == "" {
		dated = dated[1:]
	}
	if len(dated) == 0 {
		return nil, nil
	}
	p := &past{version: dated[0].Version}
	title := "^" + regexp.QuoteMeta(subject(p.version)) + "$"
	commit, err := c.git(ctx, "log", "--first-parent", "--max-count=1", "--format=%H", "--grep="+title)
	p.commit = cmp.Or(commit, s.tags["core/"+p.version])
	if err != nil || p.commit == "" {
		return p, err
	}
	files, err := c.git(ctx, "ls-tree", "-r", "--name-only", p.commit)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for name := range strings.Lines(files) {
		if name = strings.TrimSpace(name); path.Base(name) == "go.mod" {
			dirs = append(dirs, path.Dir(name))
		}
	}
	p.modules = tagged(dirs)
	return p, nil
}

// at calls f with a directory that holds the files of the tag until f returns.
func (c checkout) at(ctx context.Context, tag string, f func(root string) error) (err error) {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := dir + "/tree"
	if _, err := c.git(ctx, "worktree", "add", "--quiet", "--detach", root, tag); err != nil {
		return err
	}
	defer func() {
		if _, removing := c.git(context.WithoutCancel(ctx), "worktree", "remove", "--force", root); err == nil && removing != nil {
			err = fmt.Errorf("%s: %w", tag, removing)
		}
	}()
	return f(root)
}
