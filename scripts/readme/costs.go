package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// costTable matches the table of costs in a Markdown file: below the marker, up to an empty line.
var costTable = regexp.MustCompile(`(<!-- costs -->\n)(?:\|.+\n)*`)

// A cost is a row of a file of numbers that the front page shows.
type cost struct {
	what, file, row string
	beside          []string
}

// shown are the rows that say most, also those where somebody else is faster.
var shown = []cost{
	{"an operation that does nothing, one producer", "numbers", "run/producers=1", []string{"conc", "errgroup", "pond-Go"}},
	{"the same, one after the other", "numbers", "run/producers=1/one-at-a-time", []string{"conc", "pond-Submit"}},
	{"the same with a signal of its own", "numbers", "run/producers=1/signals=1/age=none", []string{"conc"}},
	{"a limiter that allows", "numbers", "limiter/op=allow/goroutines=1", []string{"x-time-rate", "failsafe"}},
	{"a retrier without a failure", "numbers", "retry/op=success", []string{"backoff", "retry-go"}},
	{"a breaker that lets a call through", "numbers", "breaker/op=success/goroutines=1", []string{"gobreaker", "failsafe"}},
	{"a cache, 80 reads and 20 writes, 8 goroutines", "numbers", "cache/op=get-80-set-20/goroutines=8", []string{"otter", "ristretto"}},
	{"a value that is loaded", "numbers", "slidingcache/op=load-missing/goroutines=1", []string{"otter"}},
	{"a durable item, 10 workers", "numbers-durable", "durable/op=run/keys=cold/workers=10", []string{"river", "by-hand"}},
	{"a durable item, 100 workers", "numbers-durable", "durable/op=run/keys=cold/workers=100", []string{"river", "by-hand"}},
}

// costs returns the table of the rows in shown, from the files that bench/compare has written.
func costs(tree *repo.Tree) (string, error) {
	text := "| | beside |\n| --- | --- |\n"
	for _, c := range shown {
		file := "docs/" + c.file + ".md"
		var ratios []string
		for _, peer := range c.beside {
			row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(c.row) + ` \|[^|]*\| ` + regexp.QuoteMeta(peer) + ` \|[^|]*\| ([0-9.]+) `)
			found := row.FindSubmatch(tree.Text(file))
			if found == nil {
				return "", fmt.Errorf("%s has no row %s beside %s", file, c.row, peer)
			}
			ratios = append(ratios, fmt.Sprintf("%s %s", peer, found[1]))
		}
		text += fmt.Sprintf("| %s | %s |\n", c.what, strings.Join(ratios, ", "))
	}
	return text, nil
}
