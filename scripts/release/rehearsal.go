package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/goproxy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
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

// user is a program that imports package complete. It prints the modules of the repository
// that are linked, with their versions.
const user = `package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	_ "` + repo.Prefix + `complete"
)

func main() {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "` + repo.Prefix + `") {
			fmt.Println(m.Path, m.Version)
		}
	}
}
`

// rehearse makes two releases in a copy of the tree, with commits, tags and a remote of
// its own: the next one, and a patch of it. It writes their bills of materials and
// serves what was tagged from a proxy of files. A program outside of the tree gets the first
// release, is upgraded to the second, and runs before and after. Then the command is installed
// and checks that program. All this is removed at the end.
func (c checkout) rehearse(ctx context.Context, now time.Time, out io.Writer) error {
	dir, err := os.MkdirTemp("", "rehearsal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	copied, err := c.duplicate(ctx, dir)
	if err != nil {
		return err
	}
	proxy, program := filepath.Join(dir, "proxy"), filepath.Join(dir, "user")
	env, err := goproxy.Environ(ctx, proxy)
	if err != nil {
		return err
	}
	env = append(env, "GOMODCACHE="+filepath.Join(dir, "modcache"), "GOBIN="+filepath.Join(dir, "bin"))
	run := func(name string, args ...string) (string, error) {
		text, err := command.Output(ctx, program, env, name, args...)
		return string(text), err
	}
	release := func(get ...string) (*repo.Tree, string, error) {
		tree, version, err := copied.release(ctx, dir, now, out)
		if err == nil {
			err = writeUser(program, tree)
		}
		if err == nil {
			_, err = run("go", append([]string{"get"}, get...)...)
		}
		if err == nil {
			err = tryUser(run, version, out)
		}
		return tree, version, err
	}

	_, version, err := release(repo.Prefix + "complete")
	if err != nil {
		return err
	}
	if err := copied.announcePatch(ctx, version, now); err != nil {
		return err
	}
	tree, version, err := release("-u", "./...")
	if err != nil {
		return err
	}
	if m := tree.Module("cmd/ephemeral"); m != nil {
		if _, err := run("go", "install", m.Path()+"@"+version); err != nil {
			return err
		}
		if _, err := run(filepath.Join(dir, "bin", "ephemeral"), "vet", "./..."); err != nil {
			return err
		}
		fmt.Fprintf(out, "installed %s at %s, and it has checked that program\n", m.Dir, version)
	}
	return nil
}

// duplicate copies the files of the tree into a new repository in dir, with a remote. There
// the next release is the first one, because the history is not copied.
func (c checkout) duplicate(ctx context.Context, dir string) (checkout, error) {
	copied := checkout{filepath.Join(dir, "tree")}
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
	origin := filepath.Join(dir, "origin.git")
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

// release makes a release in the copy, writes its bills of materials, and adds what was
// tagged to the proxy in dir. It returns the tree that was tagged, and the version.
func (c checkout) release(ctx context.Context, dir string, now time.Time, out io.Writer) (*repo.Tree, string, error) {
	s, err := c.state(ctx, "origin", "main", now)
	if err != nil {
		return nil, "", err
	}
	p := newPlan(s)
	if len(p.problems) > 0 {
		return nil, "", fmt.Errorf("the copy cannot be released:\n- %s", strings.Join(p.problems, "\n- "))
	}
	if err := c.follow(ctx, p, io.Discard); err != nil {
		return nil, "", err
	}
	if s, err = c.state(ctx, "origin", "main", now); err != nil {
		return nil, "", err
	}
	if !s.complete(s.last) {
		return nil, "", fmt.Errorf("the copy lacks tags of %s", p.version)
	}
	var tree *repo.Tree
	err = c.at(ctx, "core/"+p.version, func(root string) error {
		n, err := writeBOMs(ctx, root, filepath.Join(dir, "sbom", p.version))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "released %s in a copy: %d modules tagged, %d bills of materials written\n", p.version, len(s.last.modules), n)
		if tree, err = repo.Load(os.DirFS(root)); err != nil {
			return err
		}
		return goproxy.Write(filepath.Join(dir, "proxy"), tree, p.version)
	})
	return tree, p.version, err
}

// announcePatch makes the patch after the version the next release of the copy, as RELEASING.md says.
func (c checkout) announcePatch(ctx context.Context, version string, now time.Time) error {
	s, err := c.state(ctx, "origin", "main", now)
	if err != nil {
		return err
	}
	p := &plan{version: version}
	next := patch(version)
	p.edit(s, next, unreleased(following(version)), unreleased(next)+"\n\n- a patch")
	p.git("commit", "--all", "--message=Announce "+next)
	p.git("push", s.remote, s.branch)
	return c.follow(ctx, p, io.Discard)
}

// patch returns the version of a patch of the version.
func patch(version string) string {
	if semver.Prerelease(version) != "" {
		return following(version)
	}
	var last int
	fmt.Sscanf(strings.TrimPrefix(version, semver.MajorMinor(version)+"."), "%d", &last) // semver.IsValid holds
	return fmt.Sprintf("%s.%d", semver.MajorMinor(version), last+1)
}

// writeUser writes the files of the program, with the examples of package complete as its
// tests. It keeps a go.mod that is there.
func writeUser(dir string, tree *repo.Tree) error {
	texts := map[string][]byte{"main.go": []byte(user)}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		texts["go.mod"] = fmt.Appendf(nil, "module example.com/user\n\ngo %s\n", policy.GoVersion)
	}
	for _, name := range tree.Module("complete").Files {
		if policy.Matches("complete/example*_test.go", name) {
			texts["examples/"+filepath.Base(name)] = tree.Text(name)
		}
	}
	return command.WriteFiles(dir, texts)
}

// tryUser builds and runs the program and its examples, and checks that all modules of the
// repository are linked at the version.
func tryUser(run func(name string, args ...string) (string, error), version string, out io.Writer) error {
	if _, err := run("go", "test", "-vet=off", "-ldflags=-s -w", "-timeout=2m", "./..."); err != nil {
		return err
	}
	text, err := run("go", "run", ".")
	if err != nil {
		return err
	}
	linked := strings.Split(strings.TrimSpace(text), "\n")
	if slices.ContainsFunc(linked, func(line string) bool { return !strings.HasSuffix(line, " "+version) }) {
		return fmt.Errorf("a program that was brought to %s has linked\n%s", version, text)
	}
	fmt.Fprintf(out, "a program outside got %s: its examples pass, and it links %d modules of it\n", version, len(linked))
	return nil
}
