package top

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

const (
	bold    = "\x1b[1m"
	inverse = "\x1b[7m"
	red     = "\x1b[31m"
	reset   = "\x1b[0m"
)

// View draws the head, the tables around the chosen row, and what keys do.
func (m *model) View() tea.View {
	head := fit(m.title+"  "+m.sent.UTC().Format("15:04:05")+"  "+m.client.page.Redacted(), m.width)
	if m.err != nil {
		head = red + fit("not up to date since "+m.sent.UTC().Format("15:04:05")+" UTC, and asking again: "+m.err.Error(), m.width) + reset
	}
	lines, at := m.lines()
	height := max(0, m.height-2)
	first := max(0, min(at-height/2, len(lines)-height))
	lines = lines[first:min(len(lines), first+height)]
	for len(lines) < height {
		lines = append(lines, "")
	}
	v := tea.NewView(strings.Join(append(append([]string{head}, lines...), fit(m.foot(), m.width)), "\n"))
	v.AltScreen = true
	return v
}

// lines draws a table of each kind. at is the line of the chosen row.
func (m *model) lines() (lines []string, at int) {
	var widths []int
	for i, r := range m.rows {
		if i == 0 || r.kind != m.rows[i-1].kind {
			head := r.kind.head()
			widths = r.kind.widths(head, m.rows)
			lines = append(lines, "", bold+fit(columns(head, widths), m.width)+reset)
		}
		line := fit(columns(r.cells, widths), m.width)
		if i == m.cursor {
			line, at = inverse+line+reset, len(lines)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		lines = append(lines, "", fit("nothing here", m.width))
	}
	return lines, at
}

// foot is the last line.
func (m *model) foot() string {
	switch q := m.question; {
	case q != nil && q.isLimit():
		return q.text + ", new limit: " + m.draft + "▏ enter sets it, esc does not"
	case q != nil:
		return q.text + "? y does it, any other key does not"
	case m.note != "":
		return m.note
	}
	help, r := "↑ ↓ choose", m.row()
	if r.opens.name != "" {
		help += "  enter " + r.opens.name
	}
	for _, a := range r.acts {
		name, _, _ := strings.Cut(a.text, " ")
		help += "  " + a.key + " " + name
	}
	if len(m.path) > 1 {
		help += "  esc back"
	}
	return help + "  q quit"
}

// head has the names of the columns for people. In the place of the first is the kind.
func (k *kind) head() []string {
	_, others, _ := strings.Cut(k.columns, " ")
	return strings.Fields(strings.ToUpper(k.name + " " + strings.ReplaceAll(others, "Ms ", " ")))
}

// widths are the columns that each cell needs; 0 for a column that is empty.
func (k *kind) widths(head []string, rows []row) []int {
	widths := make([]int, len(head))
	for _, r := range rows {
		for i, cell := range r.cells {
			if r.kind == k && cell != "-" {
				widths[i] = max(widths[i], ansi.StringWidth(cell), len(head[i]))
			}
		}
	}
	return widths
}

// columns pads cells to their widths.
func columns(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		if widths[i] > 0 {
			b.WriteString(cell + strings.Repeat(" ", max(0, widths[i]-ansi.StringWidth(cell))+2))
		}
	}
	return b.String()
}

// fit returns text as exactly width columns, without control characters.
func fit(text string, width int) string {
	text = ansi.Truncate(clean(text), max(0, width), "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}
