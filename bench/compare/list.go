package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"

	"github.com/ephemeralgo/ephemeral/bench"
)

var errNoRow = errors.New("-run and -cpu select no row")

// selection says which rows are meant.
type selection struct {
	match *regexp.Regexp // of group/name
	cores int            // 0: all
	notes io.Writer      // says which groups are left out
}

// groups yields the groups with rows that are meant, and these rows.
func (s selection) groups() iter.Seq2[bench.Group, []bench.Row] {
	return func(yield func(bench.Group, []bench.Row) bool) {
		for _, group := range bench.Groups() {
			if s.cores > 0 && (s.cores == 1) != (group.Cores == 1) {
				continue
			}
			all := group.Rows()
			if len(all) == 0 {
				fmt.Fprintf(s.notes, "leaving out %s: it needs %s\n", group.Name, bench.PostgresDSN)
				continue
			}
			var rows []bench.Row
			for _, row := range all {
				if s.match.MatchString(group.Name + "/" + row.Name) {
					rows = append(rows, row)
				}
			}
			if len(rows) > 0 && !yield(group, rows) {
				return
			}
		}
	}
}

// list prints what each group measures, and the group/name of each row with the sides beside
// ours.
func (s selection) list(w io.Writer) error {
	found := false
	for group, rows := range s.groups() {
		found = true
		fmt.Fprintf(w, "# %s: %s\n", group.Name, group.Measures)
		for _, row := range rows {
			var beside []string
			for _, side := range row.Sides[1:] {
				beside = append(beside, side.Name)
			}
			fmt.Fprintf(w, "%s/%s\tbeside %s\n", group.Name, row.Name, strings.Join(beside, ", "))
		}
	}
	if !found {
		return errNoRow
	}
	return nil
}
