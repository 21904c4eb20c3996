package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
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

// state reads what a release to the branch of the remote is planned from. It changes nothing.
func (c checkout) state(ctx context.Context, remote, branch string, now time.Time) (*state, error) {
	tree, err := repo.Load(os.DirFS(c.root))
	if err != nil {
		return nil, err
	}
	s := &state{remote: remote, branch: branch, today: now.UTC().Format(time.DateOnly), files: map[string]string{}}
	if s.sections, err = repo.Changelog(tree.FS); err != nil {
		return nil, err
	}
	names := []string{"CHANGELOG.md"}
	var dirs []string
	for _, m := range tree.Modules {
		names = append(names, m.Dir+"/go.mod")
		dirs = append(dirs, m.Dir)
	}
	s.modules = tagged(dirs)
	for _, name := range names {
		text, err := fs.ReadFile(tree.FS, name)
		if err != nil {
			return nil, err
		}
		s.files[name] = string(text)
	}
	for _, q := range []struct {
		to   *string
		args []string
	}{
		{&s.dirty, []string{"status", "--porcelain"}},
		{&s.on, []string{"branch", "--show-current"}},
		{&s.head, []string{"rev-parse", "HEAD"}},
	} {
		if *q.to, err = c.git(ctx, q.args...); err != nil {
			return nil, err
		}
	}
	refs, err := c.refs(ctx, "show-ref", "--dereference")
	if err != nil {
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
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if ref == "" {
			hash, ref, _ = strings.Cut(hash, " ")
		}
		// An annotated tag is an object of its own, and then comes what it is on.
		refs[strings.TrimSuffix(ref, "^{}")] = hash
	}
	return refs, nil
}

// past looks for the commit of the newest version that the changelog dates.
func (c checkout) past(ctx context.Context, s *state) (*past, error) {
	dated := s.sections
	if dated[0].Date == "" {
		dated = dated[1:]
	}
	if len(dated) == 0 {
		return nil, nil
	}
	p := &past{version: dated[0].Version}
	log, err := c.git(ctx, "log", "--first-parent", "--format=%H %s")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(log) {
		hash, title, _ := strings.Cut(strings.TrimSpace(line), " ")
		if title == subject(p.version) {
			p.commit = hash
			break
		}
	}
	if p.commit == "" {
		p.commit = s.tags["core/"+p.version]
	}
	if p.commit == "" {
		return p, nil
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

// at calls f with a directory that holds the files of the tag for as long as f runs.
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
