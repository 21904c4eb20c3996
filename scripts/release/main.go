// Command release releases all published modules at the version that the first
// heading in CHANGELOG.md names:
//
//	go run ./scripts/release            # makes the commits in a work tree of its own, and shows them
//	go run ./scripts/release -publish   # pushes them, with a tag for each module
//	go run ./scripts/release -candidate # the same for a candidate, vX.Y.Z-rc.N; with -publish, pushes its tags
//	go run ./scripts/release -sbom DIR  # writes a bill of materials of each module
//
// It refuses if the tree has changes, differs from the branch of the remote, fails the
// checks, or has incompatible changes that the version does not allow. Then it makes two
// commits, one for the release and one that opens the next version. It pushes both and all
// tags at once: the remote takes everything or nothing. RELEASING.md says what a maintainer
// does.
//
// # Decisions
//
// There are two commits: "Release" dates the heading and gets the tags; "Open" announces the next
// version. So the rule that modules require each other at the version of the heading holds in both.
// The branch and all tags are pushed with git push --atomic, so a run that was interrupted has changed
// nothing or released everything. To push tag by tag works on servers without atomic pushes, but a run
// that stops halfway has to be continued, which took as much code as the release itself. A tag that is
// there already stops the program; it is never moved. A candidate is a commit beside the branch: the
// changelog goes on as it is, and its text is still that of the release.
//
// The exported API is compared by golang.org/x/exp/apidiff. gorelease looks at one module at a time,
// downloads what it requires, where the new version is not yet to be found, and leaves v0 alone.
// Comparing texts of go doc would be wrong in both directions. Bills of materials come from go list: the
// format is small, and go version -m describes a binary, not what a library needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
)

// options are the flags, and the time.
type options struct {
	publish, nochecks      bool
	candidate              bool
	sbom                   string
	remote, branch, checks string
	now                    time.Time
}

func main() {
	o := options{now: time.Now()}
	flag.BoolVar(&o.publish, "publish", false, "push the release, instead of showing it")
	flag.BoolVar(&o.candidate, "candidate", false, "make the next candidate of the release: vX.Y.Z-rc.1, -rc.2 and so on; only its tags are pushed")
	flag.StringVar(&o.remote, "remote", "origin", "push to this `remote`")
	flag.StringVar(&o.branch, "branch", "main", "release from this `branch`")
	flag.StringVar(&o.checks, "checks", ".ci/run", "run this `command` in the root of the tree before the release")
	flag.BoolVar(&o.nochecks, "nochecks", false, "do not run the checks; not with -publish")
	flag.StringVar(&o.sbom, "sbom", "", "only write the bill of materials of each module into this `directory`")
	command.Main("release", nil, func(ctx context.Context, root string) error { return run(ctx, root, o, os.Stdout) })
}

// run releases the checkout in root, or shows the release. If something stands against the
// release, it fails before anything is made.
func run(ctx context.Context, root string, o options, out io.Writer) error {
	if o.sbom != "" {
		n, err := writeBOMs(ctx, root, o.sbom)
		if err == nil {
			fmt.Fprintf(out, "wrote %d bills of materials into %s\n", n, o.sbom)
		}
		return err
	}
	if o.publish && o.nochecks {
		return errors.New("-nochecks is for showing the release: with -publish, the checks must run")
	}
	c := checkout{filepath.Clean(root)}
	p, err := c.plan(ctx, o.remote, o.branch, o.candidate)
	if err != nil {
		return err
	}
	if err := c.check(ctx, p, o, out); err != nil {
		return err
	}
	if len(p.problems) > 0 {
		return fmt.Errorf("%s is refused:\n- %s", p.version, strings.Join(p.problems, "\n- "))
	}
	return c.at(ctx, "HEAD", func(work checkout) error {
		push, err := work.commit(ctx, p, o, out)
		if err != nil {
			return err
		}
		if !o.publish {
			fmt.Fprintf(out, "\ngit %s\n\nNothing is changed. To release, add -publish\n", strings.Join(push, " "))
			return nil
		}
		if _, err := work.git(ctx, push...); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s is released\n", p.version)
		_, err = c.git(ctx, "pull", "--quiet", "--ff-only", "--tags", o.remote, o.branch)
		return err
	})
}

// check compares the API and runs the checks, and adds problems to the plan.
func (c checkout) check(ctx context.Context, p *plan, o options, out io.Writer) error {
	if p.base == "" {
		fmt.Fprintf(out, "%s is the first release: there is no API to compare with\n", p.version)
	} else {
		fmt.Fprintf(out, "%s follows %s\n", p.version, p.base)
		var breaks []string
		err := c.at(ctx, "core/"+p.base, func(before checkout) (err error) {
			breaks, err = incompatible(ctx, before.root, c.root)
			return err
		})
		if err != nil {
			return fmt.Errorf("comparing the API with %s: %w", p.base, err)
		}
		for _, b := range breaks {
			fmt.Fprintf(out, "incompatible: %s\n", b)
		}
		if problem := forbidden(p.base, p.version, breaks); problem != "" {
			p.problem("%s", problem)
		}
	}
	if o.nochecks || len(p.problems) > 0 {
		fmt.Fprintf(out, "%s was not run\n", o.checks)
		return nil
	}
	args := strings.Fields(o.checks)
	if len(args) == 0 {
		return errors.New("there is no command with checks")
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.root, out, out
	if err := cmd.Run(); err != nil {
		p.problem("%s: %v", o.checks, err)
	}
	dirty, err := c.git(ctx, "status", "--porcelain")
	if dirty != "" {
		p.problem("%s has left the tree dirty:\n%s", o.checks, dirty)
	}
	return err
}
