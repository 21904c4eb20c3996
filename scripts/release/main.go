// Command release releases all published modules at the version that the first
// heading in CHANGELOG.md names:
//
//	go run ./scripts/release            # shows everything it would do
//	go run ./scripts/release -publish   # does it
//
// It refuses unless the tree is clean, is what the branch of the remote is, passes the
// checks, and breaks nothing that the version may not break. Then it makes two commits,
// the release and the opening of the version after it, pushes them, and tags the first
// for each module, after the modules it requires, pushing tag by tag. A run that was
// interrupted is resumed by the next. RELEASING.md tells what a maintainer does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// options are what the flags say.
type options struct {
	publish, nochecks      bool
	remote, branch, checks string
	now                    time.Time
}

func main() {
	o := options{now: time.Now()}
	flag.BoolVar(&o.publish, "publish", false, "do it, instead of showing it")
	flag.StringVar(&o.remote, "remote", "origin", "push to this `remote`")
	flag.StringVar(&o.branch, "branch", "main", "release from this `branch`")
	flag.StringVar(&o.checks, "checks", ".ci/run", "the `command` that has to succeed first, in the root of the tree")
	flag.BoolVar(&o.nochecks, "nochecks", false, "do not run the checks; not with -publish")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := repo.Root()
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("unexpected %q", flag.Args())
	}
	if err == nil {
		err = run(ctx, root, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run plans the release of the checkout in root, prints the plan and, if it is to be
// published, does what it says. It fails, before anything is changed, if something
// stands against the release.
func run(ctx context.Context, root string, o options, out io.Writer) error {
	if o.publish && o.nochecks {
		return errors.New("-nochecks is for showing what would be done: what is published is checked")
	}
	c := checkout{filepath.Clean(root)}
	s, err := c.state(ctx, o.remote, o.branch, o.now)
	if err != nil {
		return err
	}
	p := newPlan(s)
	if err := c.judge(ctx, p, o, out); err != nil {
		return err
	}
	if !o.publish {
		for _, step := range p.steps {
			if err := step.print(ctx, out); err != nil {
				return err
			}
		}
	}
	switch {
	case len(p.problems) > 0:
		return fmt.Errorf("%s is refused:\n- %s", p.version, strings.Join(p.problems, "\n- "))
	case !o.publish:
		fmt.Fprintf(out, "\nThis was a rehearsal, and nothing is changed. To do it: go run ./scripts/release -publish\n")
		return nil
	}
	for _, step := range p.steps {
		err := ctx.Err()
		if err == nil {
			err = c.do(context.WithoutCancel(ctx), step, out) // git ends what it has begun
		}
		if err != nil {
			return fmt.Errorf("%w\nThe same command again goes on from here; if files were left changed, git restore . first", err)
		}
	}
	fmt.Fprintf(out, "%s is released\n", p.version)
	return nil
}

// judge adds to the problems of the plan what comparing the API and running the checks
// shows. For a release that goes on, both were done before it began.
func (c checkout) judge(ctx context.Context, p *plan, o options, out io.Writer) error {
	if p.resumed {
		fmt.Fprintf(out, "%s has been begun: this is what is left to do\n", p.version)
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
		if problem := judge(p.base, p.version, breaks); problem != "" {
			p.problem("%s", problem)
		}
	}
	switch {
	case o.nochecks:
		fmt.Fprintf(out, "%s was not run\n", o.checks)
		return nil
	case len(p.problems) > 0:
		fmt.Fprintf(out, "%s was not run: there are problems enough\n", o.checks)
		return nil
	}
	if err := c.check(ctx, o.checks, out); err != nil {
		p.problem("%s: %v", o.checks, err)
	}
	dirty, err := c.git(ctx, "status", "--porcelain")
	if dirty != "" {
		p.problem("%s has left the tree dirty:\n%s", o.checks, dirty)
	}
	return err
}

// check runs the command with its output.
func (c checkout) check(ctx context.Context, checks string, out io.Writer) error {
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
	for _, e := range s.edits {
		if err := os.WriteFile(filepath.Join(c.root, filepath.FromSlash(e.name)), []byte(e.after), 0o644); err != nil {
			return err
		}
	}
	if s.git == nil {
		return nil
	}
	fmt.Fprintln(out, s)
	_, err := c.git(ctx, s.git...)
	return err
}

// print shows the command, or the changes as a unified diff, which git makes of two
// directories.
func (s step) print(ctx context.Context, out io.Writer) error {
	if s.git != nil {
		fmt.Fprintln(out, s)
		return nil
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, e := range s.edits {
		for side, text := range map[string]string{"a": e.before, "b": e.after} {
			name := filepath.Join(dir, side, filepath.FromSlash(e.name))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	cmd := exec.CommandContext(ctx, "git", "diff", "--no-index", "--no-prefix", "--no-color", "a", "b")
	cmd.Dir = dir
	diff, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: they differ
		return fmt.Errorf("git diff: %w", err)
	}
	_, err = out.Write(diff)
	return err
}

// String returns the git command as one would type it.
func (s step) String() string {
	quoted := make([]string, len(s.git))
	for i, arg := range s.git {
		if quoted[i] = arg; strings.ContainsAny(arg, " ~") {
			quoted[i] = "'" + arg + "'"
		}
	}
	return "$ git " + strings.Join(quoted, " ")
}
