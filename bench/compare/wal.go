package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ephemeralgo/ephemeral/bench"
)

// maxCommits is how many commits an item of a hot key may cost on our side.
const maxCommits = 1.2

// walPerItem prints the cost of an item for each side of the group durable: the number of
// writing transactions, and the bytes of WAL.
func walPerItem(w io.Writer, items int) error {
	fmt.Fprintf(w, "%d items, commits and bytes of WAL for each\n\n", items)
	line(w, "row", "side", "commits", "goal", "met", "WAL bytes")
	line(w, "---", "---", "--:", "--:", "---", "--:")
	for _, group := range bench.Groups() {
		if group.Name != "durable" {
			continue
		}
		rows := group.Rows()
		if len(rows) == 0 {
			return errors.New("-wal needs " + bench.PostgresDSN)
		}
		for _, row := range rows {
			for i, side := range row.Sides {
				body := side.New()
				body.Prepare(items)
				commits, wal := bench.Written()
				body.Run(items)
				commitsAfter, walAfter := bench.Written()
				body.Done()
				most := 0.0
				if i == 0 && strings.HasSuffix(row.Name, "keys=hot") {
					most = maxCommits
				}
				each := (commitsAfter - commits) / float64(items)
				line(w, group.Name+"/"+row.Name, side.Name, number(each), goal(most), met(each, most), fmt.Sprintf("%.0f", (walAfter-wal)/float64(items)))
			}
		}
	}
	return nil
}
