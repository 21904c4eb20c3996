package top

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// A table lists things of one kind.
type table struct {
	kind string
	keys int      // how many of the first columns tell a row from all others
	head []string // names of the columns
	rows []row
}

// A row is one thing.
type row struct {
	id    string // no other row of the screen has it
	cells []string
	opens view     // what enter shows; the zero value: nothing
	acts  []action // what the page may permit
}

func newTable(kind string, keys int, columns string) table {
	return table{kind: kind, keys: keys, head: strings.Fields(columns)}
}

// add appends a row. Its cells are clean, and none is empty.
func (t *table) add(cells ...any) *row {
	r := row{}
	for _, cell := range cells {
		text := clean(fmt.Sprint(cell))
		if text == "" {
			text = "-"
		}
		r.cells = append(r.cells, text)
	}
	r.id = t.kind + " " + strings.Join(r.cells[:t.keys], " ")
	t.rows = append(t.rows, r)
	return &t.rows[len(t.rows)-1]
}

// clean replaces what a terminal could take for a command, or what hides other text.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// A clock writes times: for scripts as they are, for people as distances from now.
type clock struct {
	now   time.Time
	exact bool
}

func (c clock) text(t time.Time) string {
	switch d := c.now.Sub(t).Round(time.Second); {
	case t.IsZero():
		return ""
	case c.exact:
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	case d < 0:
		return "in " + (-d).String()
	default:
		return d.String()
	}
}
