package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ephemeralgo/ephemeral/scripts/arch"
	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

const prefix = repo.Prefix

// clone is a clone of a small repository, beside the bare repository it was cloned from.
type clone struct {
	t            *testing.T
	root, origin string
	now          time.Time
}

// newClone makes both repositories, with one commit that has been pushed.
func newClone(t *testing.T) *clone {
	t.Helper()
	command.Long(t)
	dir := t.TempDir()
	// Without this, git runs in the background and writes to directories that are being removed. In a file, the
	// setting also applies to the other end of a push and to fetches of the go command.
	config := filepath.Join(dir, "gitconfig")
	if err := os.WriteFile(config, []byte("[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_SYSTEM": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com",
		"GIT_AUTHOR_DATE": "2026-01-31T23:00:00Z", "GIT_COMMITTER_DATE": "2026-01-31T23:00:00Z", // so that the same contents get the same hashes
	} {
		t.Setenv(key, value)
	}
	c := &clone{t, filepath.Join(dir, "clone"), filepath.Join(dir, "origin.git"), time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)}
	files := fstest.MapFS{}
	module := func(dir, code string, requires ...string) {
		text := "module " + prefix + dir + "\n\ngo 1.26\n"
		for _, r := range requires {
			up, _ := filepath.Rel(dir, r)
			text += "\nrequire " + prefix + r + " v0.1.0\n\nreplace " + prefix + r + " => " + filepath.ToSlash(up) + "\n"
		}
		files[dir+"/go.mod"] = &fstest.MapFile{Data: []byte(text)}
		files[dir+"/code.go"] = &fstest.MapFile{Data: []byte("package " + filepath.Base(dir) + "\n\n" + code)}
	}
	const useCore = "import \"" + prefix + "core\"\n\nfunc Sink() *core.Sink { return core.New() }\n"
	module("core", "type Sink struct{ Name string }\n\nfunc New() *Sink { return &Sink{} }\n")
	module("atoms/retry", useCore, "core")
	module("atoms/data", useCore, "core")
	module("atoms/data/file", useCore, "core", "atoms/data")
	module("complete", "import \""+prefix+"core\"\n\ntype Sink = core.Sink\n", "core", "atoms/retry")
	module("demo", "", "atoms/retry", "core")
	files["core/internal/in/in.go"] = &fstest.MapFile{Data: []byte("package in\n\nfunc Gone() {}\n")}
	files["core/lru/lru.go"] = &fstest.MapFile{Data: []byte("package lru\n\nfunc New(size int) {}\n")}
	files["go.work"] = &fstest.MapFile{Data: []byte("go 1.26\n\nuse (\n\t./atoms/data\n\t./atoms/data/file\n\t./atoms/retry\n\t./complete\n\t./core\n\t./demo\n)\n")}
	files["CHANGELOG.md"] = &fstest.MapFile{Data: []byte("# Changelog\n\n## [Unreleased] - v0.1.0\n\n- `core`: all of it\n")}
	if err := os.CopyFS(c.root, files); err != nil {
		t.Fatal(err)
	}
	c.git("init", "--quiet", "--bare", "--initial-branch=main", c.origin)
	c.git("init", "--quiet", "--initial-branch=main")
	c.git("remote", "add", "origin", c.origin)
	c.commit()
	return c
}

func (c *clone) git(args ...string) string {
	c.t.Helper()
	out, err := command.Output(c.t.Context(), c.root, nil, "git", args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// commit commits and pushes all changes.
func (c *clone) commit() {
	c.t.Helper()
	c.git("add", "--all")
	c.git("commit", "--quiet", "--message=Work")
	c.git("push", "--quiet", "origin", "main")
}

// replace replaces a piece of a file. The piece must be there.
func (c *clone) replace(name, old, new string) {
	c.t.Helper()
	name = filepath.Join(c.root, filepath.FromSlash(name))
	text, err := os.ReadFile(name)
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		c.t.Fatalf("%s does not contain %q", name, old)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), old, new, 1)), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// release runs the command. Without given checks, it uses checks that succeed.
func (c *clone) release(publish bool, checks ...string) (string, error) {
	c.t.Helper()
	var out strings.Builder
	o := options{publish: publish, remote: "origin", branch: "main", checks: strings.Join(checks, " "), now: c.now}
	if len(checks) == 0 {
		o.checks = "git --version"
	}
	err := run(c.t.Context(), c.root, o, &out)
	return out.String(), err
}

func (c *clone) mustRelease() string {
	c.t.Helper()
	out, err := c.release(true)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// mustRefuse checks that a release fails with a message that contains the piece, and that
// it changes nothing.
func (c *clone) mustRefuse(piece string, checks ...string) string {
	c.t.Helper()
	before := c.everything()
	out, err := c.release(true, checks...)
	if err == nil || !strings.Contains(err.Error(), piece) {
		c.t.Errorf("got %v, want %q\n%s", err, piece, out)
	}
	if after := c.everything(); after != before {
		c.t.Errorf("was\n%s\nis\n%s", before, after)
	}
	return out
}

// everything lists the branches and tags of both repositories with their commits, and the
// changes in the tree.
func (c *clone) everything() string {
	return c.git("show-ref") + "\n" + c.git("ls-remote", "origin") + "\n" + c.git("status", "--porcelain", "--untracked-files=all") + "\n" + c.git("worktree", "list")
}

// released checks the commits of the clone, and all tags here and at the remote, after a
// release of the version.
func (c *clone) released(version, next string) {
	c.t.Helper()
	commit := c.git("rev-parse", "HEAD~1")
	if got, want := c.git("log", "-2", "--format=%s"), "Open "+next+"\nRelease "+version; got != want {
		c.t.Errorf("commits %q, want %q", got, want)
	}
	if got := c.git("status", "--porcelain"); got != "" {
		c.t.Errorf("left changed: %s", got)
	}
	if got := c.git("ls-remote", "origin", "refs/heads/main"); !strings.HasPrefix(got, c.git("rev-parse", "HEAD")) {
		c.t.Errorf("main of the remote is %s", got)
	}
	for _, dir := range []string{"core", "atoms/retry", "atoms/data", "atoms/data/file", "complete"} {
		tag := "refs/tags/" + dir + "/" + version
		if got := c.git("rev-parse", tag+"^{commit}"); got != commit {
			c.t.Errorf("%s is on %s, want %s", tag, got, commit)
		}
		if got := c.git("ls-remote", "origin", tag); !strings.HasPrefix(got, commit) {
			c.t.Errorf("at the remote, %s is %q", tag, got)
		}
	}
	if got := c.git("tag", "--list", "demo/*"); got != "" {
		c.t.Errorf("tagged %s", got)
	}
	c.keepsRules(version, "HEAD~1")
	c.keepsRules(next, "HEAD")
}

// keepsRules checks the rules that a release could break in the tree of the commit.
func (c *clone) keepsRules(version, commit string) {
	c.t.Helper()
	err := checkout{c.root}.at(c.t.Context(), commit, func(work checkout) error {
		tree, err := repo.Load(os.DirFS(work.root))
		if err != nil {
			return err
		}
		if got, err := tree.NextVersion(); err != nil || got != version {
			c.t.Errorf("%s is version %s, %v; want %s", commit, got, err, version)
		}
		for _, rule := range arch.Rules {
			if slices.Contains([]string{"workspace", "module path", "imports", "requirements", "replacements", "versions"}, rule.Name) {
				for _, v := range rule.Violations(tree, nil) {
					c.t.Errorf("%s: %v", commit, v)
				}
			}
		}
		return nil
	})
	if err != nil {
		c.t.Error(err)
	}
}

// TestReleases makes three releases, and gets them as a user would.
func TestReleases(t *testing.T) {
	c := newClone(t)
	before := c.everything()
	shown, err := c.release(false)
	if err != nil || c.everything() != before {
		t.Errorf("a release that is shown: %v, left %s", err, c.everything())
	}
	for _, want := range []string{
		"v0.1.0 is the first release",
		"git version ", // output of the check
		"-## [Unreleased] - v0.1.0\n+## v0.1.0 - 2026-01-31\n",
		"+++ b/atoms/data/file/go.mod\n@@ -5 +5 @@",
		"+## [Unreleased] - v0.2.0\n",
		"git push --atomic --quiet origin HEAD:refs/heads/main HEAD~1:refs/tags/atoms/data/v0.1.0 ",
		"Nothing is changed",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("does not print %q:\n%s", want, shown)
		}
	}
	c.mustRelease()
	c.released("v0.1.0", "v0.2.0")
	c.mustRefuse("CHANGELOG.md says nothing about v0.2.0")

	// Additions are compatible, and so are changes of internal packages.
	c.replace("CHANGELOG.md", "v0.2.0\n", "v0.1.1\n\n- `core`: more\n")
	for _, dir := range []string{"atoms/retry", "atoms/data", "atoms/data/file", "complete", "demo"} {
		for strings.Contains(c.git("grep", "--no-index", "v0.", "--", dir+"/go.mod"), "v0.2.0") {
			c.replace(dir+"/go.mod", "v0.2.0", "v0.1.1")
		}
	}
	c.replace("core/code.go", "Name string", "Name, Key string")
	c.replace("core/internal/in/in.go", "Gone", "Come")
	c.commit()
	if out := c.mustRelease(); strings.Contains(out, "incompatible") || !strings.Contains(out, "v0.1.1 follows v0.1.0") {
		t.Errorf("printed\n%s", out)
	}
	c.released("v0.1.1", "v0.2.0")

	// An incompatible change may be part of v0.2.0, but not of v0.1.2.
	c.replace("CHANGELOG.md", "v0.2.0\n", "v0.1.2\n\n- `core/lru`: other\n")
	c.replace("core/lru/lru.go", "New(size int)", "New(size int64)")
	c.commit()
	out := c.mustRefuse("1 incompatible changes since v0.1.1 need a new minor version, not v0.1.2")
	if !strings.Contains(out, "incompatible: core: ./lru.New: changed from func(int) to func(int64)\n") {
		t.Errorf("printed\n%s", out)
	}
	c.replace("CHANGELOG.md", "v0.1.2\n", "v0.2.0\n")
	c.commit()
	c.mustRelease()
	c.released("v0.2.0", "v0.3.0")

	c.candidates()
	if c.fetchable("v0.2.0"); os.Getenv("EPHEMERAL_REHEARSAL") != "" {
		c.fetchable("v0.1.0", "v0.1.1")
	}
}

// candidates makes a candidate of v0.3.0, mends a fault, makes another, and releases. Candidates
// leave the branch alone, and v0.2.0 stays the latest version until the release.
func (c *clone) candidates() {
	c.t.Helper()
	candidate := func(version string) {
		c.t.Helper()
		before := c.git("rev-parse", "HEAD", "origin/main")
		var out strings.Builder
		o := options{publish: true, candidate: true, remote: "origin", branch: "main", checks: "git --version", now: c.now}
		if err := run(c.t.Context(), c.root, o, &out); err != nil {
			c.t.Fatalf("%v\n%s", err, &out)
		}
		c.git("fetch", "--quiet", "--tags", "origin")
		if after := c.git("rev-parse", "HEAD", "origin/main"); after != before {
			c.t.Errorf("%s moved the branch: was %s, is %s", version, before, after)
		}
		tag := "core/" + version
		if got := c.git("show", tag+":CHANGELOG.md"); !strings.Contains(got, "## "+version+" - 2026-01-31\n\n- `core`: trials\n") {
			c.t.Errorf("the changelog of %s is\n%s", version, got)
		}
		c.keepsRules(version, tag)
	}
	c.replace("CHANGELOG.md", "v0.3.0\n", "v0.3.0\n\n- `core`: trials\n")
	c.replace("core/code.go", "Name, Key string", "Name, Key, Wrong string")
	c.commit()
	candidate("v0.3.0-rc.1")
	c.replace("core/code.go", "Wrong", "Right") // the API of a candidate is no promise
	c.commit()
	candidate("v0.3.0-rc.2")
	if got := c.latest(); got != "v0.2.0" {
		c.t.Errorf("with candidates, the latest version is %s", got)
	}
	c.mustRelease()
	c.released("v0.3.0", "v0.4.0")
	if got := c.latest(); got != "v0.3.0" {
		c.t.Errorf("after the release, the latest version is %s", got)
	}
}

// latest is the version of core that the go command takes as the latest, of all that are tagged.
func (c *clone) latest() string {
	c.t.Helper()
	proxy := c.t.TempDir()
	var list []string
	for tag := range strings.FieldsSeq(c.git("tag", "--list", "core/*")) {
		version := strings.TrimPrefix(tag, "core/")
		list = append(list, version)
		dir := filepath.Join(proxy, prefix, "core/@v")
		if err := command.WriteFiles(dir, map[string]string{
			version + ".mod":  c.git("show", tag+":core/go.mod") + "\n",
			version + ".info": `{"Version": "` + version + `"}`,
			"list":            strings.Join(list, "\n") + "\n",
		}); err != nil {
			c.t.Fatal(err)
		}
	}
	env := append(os.Environ(), "GOENV=off", "GOWORK=off", "GOPROXY=file://"+filepath.ToSlash(proxy), "GOSUMDB=off",
		"GOFLAGS=-modcacherw -mod=mod", "GOMODCACHE="+c.t.TempDir())
	out, err := command.Output(c.t.Context(), proxy, env, "go", "list", "-m", "-f", "{{.Version}}", prefix+"core@latest")
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// fetchable checks that the go command gets every module by its tag.
func (c *clone) fetchable(versions ...string) {
	c.t.Helper()
	if !strings.HasPrefix(prefix, "github.com/") {
		c.t.Log("not fetched: of other hosts, the go command first asks over the network where the repository is")
		return
	}
	user := c.t.TempDir()
	env := append(os.Environ(),
		"GOENV=off", "GOWORK=off", "GOPROXY=direct", "GOSUMDB=off", "GOFLAGS=-modcacherw -mod=mod", "GOMODCACHE="+filepath.Join(user, "cache"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+filepath.ToSlash(c.origin)+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+strings.TrimSuffix(prefix, "/"))
	for _, version := range versions {
		dir := filepath.Join(user, version)
		err := command.WriteFiles(dir, map[string]string{
			"go.mod":    "module example.com/user\n\ngo 1.26\n",
			"user.go":   "package user\n\nimport _ \"" + prefix + "complete\"\n",
			"f/file.go": "package f\n\nimport _ \"" + prefix + "atoms/data/file\"\n",
		})
		if err != nil {
			c.t.Fatal(err)
		}
		get := []string{"get", prefix + "complete@" + version, prefix + "atoms/data/file@" + version}
		for _, args := range [][]string{get, {"build", "./..."}} {
			if _, err := command.Output(c.t.Context(), dir, env, "go", args...); err != nil {
				c.t.Fatal(err)
			}
		}
		out, err := command.Output(c.t.Context(), dir, env, "go", "list", "-m", "all")
		if err != nil {
			c.t.Fatal(err)
		}
		if n := strings.Count(string(out), " "+version+"\n"); n != 5 {
			c.t.Errorf("%s brings\n%s", version, out)
		}
	}
}

func TestReleaseRefuses(t *testing.T) {
	c := newClone(t)
	c.mustRefuse("git no-such-command: exit status 1", "git no-such-command")
	if out, err := c.release(true, "git rm --quiet --cached demo/code.go"); err == nil || !strings.Contains(err.Error(), "git rm --quiet --cached demo/code.go has left the tree dirty") {
		t.Errorf("with a check that changes something: %v\n%s", err, out)
	}
	c.git("reset", "--quiet")

	c.replace("core/code.go", "&Sink{}", "new(Sink)")
	if out := c.mustRefuse("the tree is dirty: commit or remove\n M core/code.go"); !strings.Contains(out, "git --version was not run") {
		t.Errorf("printed\n%s", out)
	}
	c.git("commit", "--quiet", "--all", "--message=Work")
	c.mustRefuse("origin/main lacks commits that are here")
	c.git("push", "--quiet", "origin", "main")

	c.git("switch", "--quiet", "--create", "feature")
	c.mustRefuse(`this is branch "feature"`)
	c.git("switch", "--quiet", "main")

	c.replace("CHANGELOG.md", "v0.1.0", "v2.0.0")
	c.commit()
	c.mustRefuse("part of every module path")
	c.git("revert", "--no-edit", "HEAD")
	c.git("push", "--quiet", "origin", "main")

	// Tags of others, and of a run that was interrupted after its push.
	c.git("push", "--quiet", "origin", "HEAD:refs/tags/core/v0.1.1", "HEAD~1:refs/tags/core/v0.0.9", "HEAD:refs/tags/core/experiment")
	c.git("fetch", "--quiet", "--tags")
	c.mustRefuse("CHANGELOG.md announces v0.1.0, but v0.1.1 is released")
	c.git("push", "--quiet", "origin", ":refs/tags/core/v0.1.1")
	c.git("tag", "--delete", "core/v0.1.1")

	// The remote takes all or nothing.
	c.git("push", "--quiet", "origin", "HEAD~1:refs/tags/complete/v0.1.0")
	c.git("fetch", "--quiet", "--tags")
	c.mustRefuse("HEAD~1 -> complete/v0.1.0 (already exists)")

	c.git("push", "--quiet", "origin", "HEAD:main")
	c.git("reset", "--quiet", "--hard", "HEAD~1")
	c.mustRefuse("origin/main has commits that are not here: pull them")
	c.git("pull", "--quiet", "origin", "main")

	c.git("remote", "set-url", "origin", c.origin+".gone")
	if _, err := c.release(false); err == nil || !strings.Contains(err.Error(), "the branch and the tags of origin cannot be fetched") {
		t.Errorf("without a remote: %v", err)
	}
	c.git("remote", "set-url", "origin", c.origin)
	if _, err := c.release(true, " "); err == nil || !strings.Contains(err.Error(), "there is no command with checks") {
		t.Errorf("released without checks: %v", err)
	}
	if err := run(t.Context(), c.root, options{publish: true, nochecks: true}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "-nochecks") {
		t.Errorf("published without checks: %v", err)
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
	}
	for _, test := range tests {
		got := forbidden(test.base, test.version, test.breaks)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s after %s with %q: got %q, want %q", test.version, test.base, test.breaks, got, test.want)
		}
	}
}

func TestFollowing(t *testing.T) {
	for version, want := range map[string]string{"v0.1.0": "v0.2.0", "v0.9.3": "v0.10.0", "v1.2.3": "v1.3.0"} {
		if got := following(version); got != want {
			t.Errorf("after %s comes %s, want %s", version, got, want)
		}
	}
}
