package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// against builds this program as it is at a commit, in a worktree that it removes again. It
// runs that and itself in turns with the given flags, and prints the rows that are slower
// now.
func against(commit string, flags []string, rounds int, factor float64, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tree, old := filepath.Join(dir, "tree"), filepath.Join(dir, "old")
	call := func(dir, name string, args ...string) (string, error) {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir, c.Stderr = dir, stderr
		out, err := c.Output()
		if err != nil {
			err = fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
		}
		return string(out), err
	}
	if _, err := call("", "git", "worktree", "add", "--quiet", "--detach", tree, commit); err != nil {
		return err
	}
	defer exec.Command("git", "worktree", "remove", "--force", tree).Run() // also after an interrupt
	// trimpath: a build of that commit is found again in the cache, although the directory is new
	if _, err := call(tree, "go", "build", "-trimpath", "-o", old, "./bench/compare"); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := func(path string) func() (string, error) {
		return func() (string, error) { return call("", path, flags...) }
	}
	then, now, err := inTurns(rounds, program(old), program(self))
	if err != nil {
		return err
	}
	writeSlower(stdout, commit, then, now, factor)
	return nil
}

// inTurns runs two programs in turns and returns the least time of each row of each.
func inTurns(rounds int, old, new func() (string, error)) (then, now map[string]float64, err error) {
	then, now = map[string]float64{}, map[string]float64{}
	for range rounds {
		for _, side := range []struct {
			run   func() (string, error)
			times map[string]float64
		}{{old, then}, {new, now}} {
			out, err := side.run()
			if err != nil {
				return nil, nil, err
			}
			for row, ns := range ourTimes(out) {
				if least, ok := side.times[row]; !ok || ns < least {
					side.times[row] = ns
				}
			}
		}
	}
	return then, now, nil
}

// ourTimes reads the time of our side of each row from a table that this program printed.
func ourTimes(out string) map[string]float64 {
	times := map[string]float64{}
	for line := range strings.Lines(out) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		number, _, _ := strings.Cut(strings.TrimSpace(cells[2]), " ")
		if ns, err := strconv.ParseFloat(number, 64); err == nil {
			times[strings.TrimSpace(cells[1])] = ns
		}
	}
	return times
}

// writeSlower prints the rows of both that take more than factor times as long now.
func writeSlower(w io.Writer, commit string, then, now map[string]float64, factor float64) {
	compared, slower := 0, 0
	for _, row := range slices.Sorted(maps.Keys(now)) {
		before, ok := then[row]
		if !ok {
			continue
		}
		compared++
		if now[row] <= factor*before {
			continue
		}
		if slower++; slower == 1 {
			line(w, "row", "ns at "+commit, "ns now", "ratio")
			line(w, "---", "--:", "--:", "--:")
		}
		line(w, row, fmt.Sprintf("%.1f", before), fmt.Sprintf("%.1f", now[row]), number(now[row]/before))
	}
	fmt.Fprintf(w, "%d of %d rows are slower than at %s by more than a factor of %g; %d rows are not in both\n",
		slower, compared, commit, factor, len(then)+len(now)-2*compared)
}
