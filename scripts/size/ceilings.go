package main

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// parse reads the ceilings of packages. A line that cannot be read is left out, so its package
// has no ceiling, which the test reports.
func parse(text []byte) map[string][figures]int {
	ceilings := map[string][figures]int{}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		var dir string
		var c [figures]int
		if n, _ := fmt.Sscan(s.Text(), &dir, &c[names], &c[files], &c[complexity], &c[parameters]); n == 1+figures {
			ceilings[dir] = c
		}
	}
	return ceilings
}

// lowered returns the text of the file with the ceilings of all packages that users or the
// library import: what is measured, or what the ceiling was if that is less.
func lowered(all []size, before map[string][figures]int) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "package\tnames\tfiles\tcomplexity\tparameters")
	for _, s := range all {
		if !limited(s.dir) {
			continue
		}
		c := s.counts
		if old, ok := before[s.dir]; ok {
			for i := range c {
				c[i] = min(c[i], old[i])
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", s.dir, c[names], c[files], c[complexity], c[parameters])
	}
	w.Flush()
	return text.String()
}

// limited reports whether the package in dir has ceilings: all but tools and what is generated.
func limited(dir string) bool {
	root, _, _ := strings.Cut(dir, "/")
	return root == "core" || root == "atoms" || root == "patterns" || root == "cmd"
}

// faults says where a package is above a ceiling.
func (s size) faults(ceilings map[string][figures]int) []string {
	if !limited(s.dir) {
		return nil
	}
	c, ok := ceilings[s.dir]
	if !ok {
		return []string{s.dir + " has no ceilings: go run ./scripts/size -write"}
	}
	var faults []string
	for i, n := range s.counts {
		if n <= c[i] {
			continue
		}
		text := fmt.Sprintf("%s has %d %s, and its ceiling is %d", s.dir, n, words[i], c[i])
		if s.where[i] != "" {
			text += ": " + s.where[i]
		}
		faults = append(faults, text)
	}
	return faults
}
