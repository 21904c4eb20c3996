package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// table writes one line for each side beside ours. A document has only rows with a goal,
// and only the sides that are not ours.
type table struct{ all, doc io.Writer }

func (t *table) head() {
	both := io.MultiWriter(t.all, t.doc)
	line(both, "row", "ours ns", "beside", "its ns", "ratio", "goal", "met", "allocs/op", "its allocs")
	line(both, "---", "--:", "---", "--:", "--:", "--:", "---", "--:", "--:")
}

func line(w io.Writer, columns ...string) {
	for _, c := range columns {
		fmt.Fprintf(w, "| %s ", c)
	}
	fmt.Fprintln(w, "|")
}

func (t *table) row(group string, m measured) {
	ours := m.cells[0]
	shown := slices.ContainsFunc(m.cells[1:], func(c *cell) bool { return c.Goal > 0 && !own(c) })
	for _, c := range m.cells[1:] {
		ratio := ratios(ours, c)
		w := t.all
		if shown && !own(c) {
			w = io.MultiWriter(t.all, t.doc)
		}
		line(w,
			group+"/"+m.Name,
			spread("%.1f", ours.ns),
			c.Name,
			spread("%.1f", c.ns),
			spread("%.2f", ratio),
			goal(c.Goal),
			met(median(ratio), c.Goal),
			allocs(ours, m.MaxAllocs),
			number(median(c.allocs)),
		)
	}
}

// own reports whether a side is this library in another setting.
func own(c *cell) bool { return strings.HasPrefix(c.Name, "ours-") || strings.HasPrefix(c.Name, "no-") }

func spread(format string, list []float64) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", median(list), quantile(list, 0.25), quantile(list, 0.75))
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
