package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// asked matches the rows that answer a question of users: a document has only these.
var asked = regexp.MustCompile(`^(raise/window=1k/subscribers=0/age=default|raise/window=1k/subscribers=1/nonmatching=100/age=none|` +
	`unique/window=1k/age=none|sense/op=.*/window=1k/age=1h|run/producers=(1|64)|run/producers=1/(signals=1/age=none|lanes=3|one-at-a-time)|` +
	`run/op=interactive-beside-batch/.*|cache/op=get-80-set-20/.*|slidingcache/op=hit/.*|slidingcache/op=load-missing/goroutines=1|` +
	`limiter/op=allow/.*|limiter/op=(keyed-allow|wait)/goroutines=1|retry/op=success|hedge/op=success/delay=fixed|` +
	`breaker/op=success/goroutines=1|logging/op=signal|telemetry/op=span|wave/transition/.*|mesh/.*|durable/op=(enqueue|run)/keys=cold.*)$`)

// table writes one line for each side beside ours. A document has only the rows that are
// asked and have a goal, and only the sides that are not ours.
type table struct{ all, doc io.Writer }

func (t *table) head() {
	both := io.MultiWriter(t.all, t.doc)
	line(both, "row", "ours ns", "beside", "its ns", "ratio", "goal", "allocs/op", "its allocs")
	line(both, "---", "--:", "---", "--:", "--:", "---", "--:", "--:")
}

func line(w io.Writer, columns ...string) {
	for _, c := range columns {
		fmt.Fprintf(w, "| %s ", c)
	}
	fmt.Fprintln(w, "|")
}

func (t *table) row(group string, m measured) {
	ours := m.cells[0]
	shown := asked.MatchString(group+"/"+m.Name) && slices.ContainsFunc(m.cells[1:], func(c *cell) bool { return c.Goal > 0 && !own(c) })
	for _, c := range m.cells[1:] {
		ratio := ratios(ours, c)
		w := t.all
		if shown && !own(c) {
			w = io.MultiWriter(t.all, t.doc)
		}
		line(w,
			group+"/"+m.Name,
			fmt.Sprintf("%.1f", median(ours.ns)),
			c.Name,
			fmt.Sprintf("%.1f", median(c.ns)),
			spread(ratio),
			verdict(median(ratio), c.Goal),
			allocs(ours, m.MaxAllocs),
			number(median(c.allocs)),
		)
	}
}

// own reports whether a side is this library in another setting.
func own(c *cell) bool { return strings.HasPrefix(c.Name, "ours-") || strings.HasPrefix(c.Name, "no-") }

func spread(list []float64) string {
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(list), quantile(list, 0.25), quantile(list, 0.75))
}

func goal(g float64) string {
	if g == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g", g)
}

func met(ratio, goal float64) string {
	switch {
	case goal == 0:
		return ""
	case ratio <= goal:
		return "met"
	}
	return "**missed**"
}

// verdict returns the goal, and says so if the ratio misses it.
func verdict(ratio, most float64) string {
	if most == 0 || ratio <= most {
		return goal(most)
	}
	return goal(most) + " " + met(ratio, most)
}

// allocs returns the number of allocations, in bold if it is more than most. Goroutines and
// the measurement itself may add a few.
func allocs(c *cell, most float64) string {
	n := median(c.allocs)
	if most >= 0 && n > most+0.05 {
		return fmt.Sprintf("**%s > %g**", number(n), most)
	}
	return number(n)
}

func number(x float64) string { return fmt.Sprintf("%.2f", x) }
