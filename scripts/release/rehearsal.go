package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/goproxy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// gitConfig lets git work in a throw-away repository, whatever the user's settings are. Git
// does not run in the background, where it would write into what is being removed.
const gitConfig = `[user]
	name = rehearsal
	email = rehearsal@example.com
[commit]
	gpgsign = false
[tag]
	gpgsign = false
[gc]
	auto = 0
[maintenance]
	auto = false
[core]
	autocrlf = false
`

// rehearse makes the next release in a copy of the tree, with commits, tags and a remote of
// its own, and writes its bills of materials. It serves what was tagged from a proxy of
// files, and then the same as a patch. A program outside of the tree gets the release, and is
// upgraded to the patch; it runs before and after. Then the command is installed and checks
// that program. All this is removed at the end.
func (c checkout) rehearse(ctx context.Context, now time.Time, out io.Writer) error {
	dir, err := os.MkdirTemp("", "rehearsal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	copied, err := c.duplicate(ctx, filepath.Join(dir, "tree"), filepath.Join(dir, "origin.git"))
	if err != nil {
		return err
	}
	proxy := filepath.Join(dir, "proxy")
	version, err := copied.release(ctx, proxy, filepath.Join(dir, "sbom"), now, out)
	if err != nil {
		return err
	}
	user, err := newUser(ctx, dir, proxy)
	if err != nil {
		return err
	}
	if err := user.get(ctx, version, out, repo.Prefix+"complete"); err != nil {
		return err
	}
	tree, version, err := copied.patch(ctx, proxy, version, now)
	if err != nil {
		return err
	}
	if err := user.get(ctx, version, out, "-u", "./..."); err != nil {
		return err
	}
	if m := tree.Module("cmd/ephemeral"); m != nil {
		return user.install(ctx, m, version, out)
	}
	return nil
}

// duplicate copies the files of the tree into a new repository in root, with a remote in
// origin. There the next release is the first one, because the history is not copied.
func (c checkout) duplicate(ctx context.Context, root, origin string) (checkout, error) {
	copied := checkout{root}
	tree, err := repo.Load(os.DirFS(c.root))
	if err != nil {
		return copied, err
	}
	sections, err := repo.Changelog(tree.Text("CHANGELOG.md"))
	if err != nil {
		return copied, err
	}
	texts := map[string][]byte{}
	for _, name := range tree.Files {
		texts[name] = tree.Text(name)
	}
	next := sections[0]
	texts["CHANGELOG.md"] = fmt.Appendf(nil, "# Changelog\n\n%s\n\n%s\n", unreleased(next.Version), cmp.Or(next.Text, "- a rehearsal"))
	if err := command.WriteFiles(copied.root, texts); err != nil {
		return copied, err
	}
	if _, err := copied.git(ctx, "init", "--quiet", "--initial-branch=main"); err != nil {
		return copied, err
	}
	config, err := os.OpenFile(filepath.Join(copied.root, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return copied, err
	}
	_, err = config.WriteString(gitConfig)
	if err := errors.Join(err, config.Close()); err != nil {
		return copied, err
	}
	for _, args := range [][]string{
		{"add", "--all", "--force"},
		{"commit", "--quiet", "--message=Work"},
		{"clone", "--quiet", "--bare", "--config=gc.auto=0", "--config=maintenance.auto=false", ".", origin},
		{"remote", "add", "origin", origin},
	} {
		if _, err := copied.git(ctx, args...); err != nil {
			return copied, err
		}
	}
	return copied, nil
}

// release makes the next release in the copy, writes its bills of materials, adds what was
// tagged to the proxy, and returns the version.
func (c checkout) release(ctx context.Context, proxy, sbom string, now time.Time, out io.Writer) (string, error) {
	s, err := c.state(ctx, "origin", "main", now)
	if err != nil {
		return "", err
	}
	p := newPlan(s)
	if len(p.problems) > 0 {
		return "", errors.New(strings.Join(p.problems, "\n- "))
	}
	if err := c.follow(ctx, p, io.Discard); err != nil {
		return "", err
	}
	refs, err := c.refs(ctx, "ls-remote", "--quiet", "origin")
	if err != nil {
		return "", err
	}
	for _, dir := range s.modules {
		if commit := refs["refs/tags/"+dir+"/"+p.version]; commit == "" || commit != refs["refs/tags/core/"+p.version] {
			return "", fmt.Errorf("%s is tagged at %q", dir, commit)
		}
	}
	return p.version, c.at(ctx, "core/"+p.version, func(root string) error {
		n, err := writeBOMs(ctx, root, sbom)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "released %s in a copy: %d tags, %d bills of materials\n", p.version, len(s.modules), n)
		tree, err := repo.Load(os.DirFS(root))
		if err != nil {
			return err
		}
		return goproxy.Write(proxy, tree, p.version)
	})
}

// patch makes the next patch of the version from the copy, adds it to the proxy, and returns
// its tree and its version.
func (c checkout) patch(ctx context.Context, proxy, version string, now time.Time) (*repo.Tree, string, error) {
	s, err := c.state(ctx, "origin", "main", now)
	if err != nil {
		return nil, "", err
	}
	next := patched(version)
	p := new(plan)
	p.edit(s, next, unreleased(following(version)), unreleased(next))
	if err := c.follow(ctx, p, io.Discard); err != nil {
		return nil, "", err
	}
	tree, err := repo.Load(os.DirFS(c.root))
	if err != nil {
		return nil, "", err
	}
	return tree, next, goproxy.Write(proxy, tree, next)
}

// patched returns the version of the next patch of a version.
func patched(version string) string {
	if semver.Prerelease(version) != "" {
		return following(version)
	}
	minor := semver.MajorMinor(version)
	var last int
	fmt.Sscanf(strings.TrimPrefix(version, minor), ".%d", &last) // semver.IsValid holds
	return fmt.Sprintf("%s.%d", minor, last+1)
}
