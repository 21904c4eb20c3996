// Command release releases all published modules at the version that the first
// heading in CHANGELOG.md names:
//
//	go run ./scripts/release            # shows everything it would do, and tries it in a copy
//	go run ./scripts/release -publish   # does it
//	go run ./scripts/release -sbom DIR  # writes a bill of materials of each module
//
// It refuses if the tree has changes, differs from the branch of the remote, fails the
// checks, or has incompatible changes that the version does not allow. Then it makes two
// commits, one for the release and one that opens the next version, and pushes them. It
// tags the first commit for each module, in the order of requirements, and pushes tag by
// tag. If it is interrupted, the next run continues. RELEASING.md says what a maintainer
// does.
//
// # Decisions
//
// The plan is a value, computed from the tree, the tags and the remote, and tested as a table. Whether
// something is left to do is read from commits and tags, so a run that was interrupted is continued. A
// tag on another commit than it should be stops the program; a tag is never moved.
//
// There are two commits: "Release" dates the heading and gets the tags; "Open" announces the next
// version. So the rule that modules require each other at the version of the heading holds in both. The
// branch is pushed first, then tag by tag, each module after those it requires. All tags at once would
// not do: not every server is atomic, and GitHub starts no workflow for more than three tags together.
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
	sbom                   string
	remote, branch, checks string
	now                    time.Time
}

func main() {
	o := options{now: time.Now()}
	flag.BoolVar(&o.publish, "publish", false, "make the release, instead of showing it")
	flag.StringVar(&o.remote, "remote", "origin", "push to this `remote`")
	flag.StringVar(&o.branch, "branch", "main", "release from this `branch`")
	flag.StringVar(&o.checks, "checks", ".ci/run", "run this `command` in the root of the tree before the release")
	flag.BoolVar(&o.nochecks, "nochecks", false, "do not run the checks; not with -publish")
	flag.StringVar(&o.sbom, "sbom", "", "only write the bill of materials of each module into this `directory`")
	command.Main("release", nil, func(ctx context.Context, root string) error { return run(ctx, root, o, os.Stdout) })
}

// run plans the release of the checkout in root, and prints the plan or follows it. If the
// plan has problems, it fails before anything is changed.
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
	s, err := c.state(ctx, o.remote, o.branch, o.now)
	if err != nil {
		return err
	}
	p := newPlan(s)
	if err := c.check(ctx, p, o, out); err != nil {
		return err
	}
	if !o.publish {
		for _, step := range p.steps {
			fmt.Fprintln(out, step)
		}
	}
	switch {
	case len(p.problems) > 0:
		return fmt.Errorf("%s is refused:\n- %s", p.version, strings.Join(p.problems, "\n- "))
	case !o.publish:
		if err := c.rehearse(ctx, o.now, out); err != nil {
			return fmt.Errorf("%s fails in a copy: %w", p.version, err)
		}
		fmt.Fprintf(out, "\nThis was a rehearsal, and nothing is changed. To release: go run ./scripts/release -publish\n")
		return nil
	}
	if err := c.follow(ctx, p, out); err != nil {
		return fmt.Errorf("%w\nRun the same command again to continue; if files are changed, run git restore . first", err)
	}
	fmt.Fprintf(out, "%s is released\n", p.version)
	return nil
}

// follow does the steps of the plan. After the end of the context it starts none.
func (c checkout) follow(ctx context.Context, p *plan, out io.Writer) error {
	for _, step := range p.steps {
		err := ctx.Err()
		if err == nil {
			err = c.do(context.WithoutCancel(ctx), step, out) // a started git command is not interrupted
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check compares the API and runs the checks, and adds problems to the plan. A release that
// continues has passed both before.
func (c checkout) check(ctx context.Context, p *plan, o options, out io.Writer) error {
	if p.resumed {
		fmt.Fprintf(out, "%s was interrupted: this is left to do\n", p.version)
		return nil
	}
	if p.base == "" {
		fmt.Fprintf(out, "%s is the first release: there is no API to compare with\n", p.version)
	} else {
		fmt.Fprintf(out, "%s follows %s\n", p.version, p.base)
		var breaks []string
		err := c.at(ctx, "core/"+p.base, func(before string) (err error) {
			breaks, err = incompatible(ctx, before, c.root)
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
	switch {
	case o.nochecks:
		fmt.Fprintf(out, "%s was not run\n", o.checks)
		return nil
	case len(p.problems) > 0:
		fmt.Fprintf(out, "%s was not run, because there are other problems\n", o.checks)
		return nil
	}
	if err := c.command(ctx, o.checks, out); err != nil {
		p.problem("%s: %v", o.checks, err)
	}
	dirty, err := c.git(ctx, "status", "--porcelain")
	if dirty != "" {
		p.problem("%s has left the tree dirty:\n%s", o.checks, dirty)
	}
	return err
}

// command runs a command and shows what it prints.
func (c checkout) command(ctx context.Context, checks string, out io.Writer) error {
	args := strings.Fields(checks)
	if len(args) == 0 {
		return errors.New("there is no command")
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = c.root
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// do changes the files, or runs the git command.
func (c checkout) do(ctx context.Context, s step, out io.Writer) error {
	texts := map[string]string{}
	for _, e := range s.edits {
		texts[e.name] = e.after
	}
	if s.git == nil {
		return command.WriteFiles(c.root, texts)
	}
	fmt.Fprintln(out, s)
	_, err := c.git(ctx, s.git...)
	return err
}

// String returns the git command as a user would type it, or the lines that change.
func (s step) String() string {
	if s.git == nil {
		var text strings.Builder
		for _, e := range s.edits {
			fmt.Fprintf(&text, "%s\n%s%s", e.name, without(e.before, e.after, "-"), without(e.after, e.before, "+"))
		}
		return text.String()
	}
	quoted := make([]string, len(s.git))
	for i, arg := range s.git {
		if quoted[i] = arg; strings.ContainsAny(arg, " ~") {
			quoted[i] = "'" + arg + "'"
		}
	}
	return "$ git " + strings.Join(quoted, " ")
}

// without returns the lines of a text that are not in the other text, each with a prefix.
func without(text, other, prefix string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains("\n"+other, "\n"+line) {
			lines.WriteString(prefix + line)
		}
	}
	return lines.String()
}
