package menu

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

const (
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	blue    = "\x1b[34m"
	magenta = "\x1b[35m"
	grey    = "\x1b[90m"
	inverse = "\x1b[7m"
	reset   = "\x1b[0m"
)

// View draws the list and, below it, the output; the signals are at the side.
func (m model) View() tea.View {
	side := min(max(m.width-80, 40), 60, m.width/2)
	left, right := m.left(m.width-side-1), m.right(side)
	rows := make([]string, max(0, m.height-1))
	for i := range rows {
		rows[i] = left[i] + "│" + right[i]
	}
	v := tea.NewView(strings.Join(append(rows, ansi.Truncate(m.help(), m.width, "")), "\n"))
	v.AltScreen = true
	return v
}

// left draws the list and the output. The list is shorter while there is output.
func (m model) left(width int) []string {
	height := max(0, m.height-1)
	visible := len(m.scenarios)
	if m.run != nil || m.finished {
		visible = min(visible, max(1, height/3))
	}
	visible = min(visible, max(0, height-2))
	first := min(max(0, m.cursor-visible/2), len(m.scenarios)-visible)

	lines := []string{fit("Ephemeral", width)}
	for i, s := range m.scenarios[first : first+visible] {
		text := fit("  "+s.Name+strings.Repeat(" ", max(1, 14-len(s.Name)))+s.Title, width)
		if first+i == m.cursor {
			text = inverse + text + reset
		}
		lines = append(lines, text)
	}
	lines = append(lines, fit(strings.Repeat("─", max(0, width)), width))
	return fill(lines, m.newest(width, height-len(lines)), width, height)
}

// newest are the last lines of the output, wrapped.
func (m model) newest(width, height int) []string {
	if m.run == nil && !m.finished {
		return nil
	}
	var lines []string
	for _, text := range m.output[max(0, len(m.output)-max(0, height)):] {
		for _, part := range splitLines([]byte(ansi.Wrap(clean(text), max(1, width), ""))) {
			lines = append(lines, fit(part, width))
		}
	}
	return lines[max(0, len(lines)-max(0, height)):]
}

// right draws the window of signals.
func (m model) right(width int) []string {
	height := max(0, m.height-1)
	var head, lines []string
	for _, text := range m.signals.head() {
		head = append(head, fit(text, width))
	}
	for _, s := range m.signals.signals[max(0, len(m.signals.signals)-max(0, height-len(head))):] {
		lines = append(lines, colour(s.Name)+fit(line(s, width), width)+reset)
	}
	return fill(head, lines, width, height)
}

// help draws the last line.
func (m model) help() string {
	switch {
	case m.typing:
		return "filter: " + clean(m.draft) + "▏  a pattern such as order.*, empty for all; enter, esc"
	case m.stopping && m.run != nil:
		return "interrupted: the scenario ends what it has begun; ctrl+c again leaves at once"
	case m.run != nil:
		return "/ filter  + - sampling  ctrl+c end the scenario"
	case m.finished:
		return "any key returns  / filter  + - sampling"
	}
	return "↑ ↓ choose  enter run  / filter  + - sampling  q quit"
}

// fill returns head and body as exactly height lines.
func fill(head, body []string, width, height int) []string {
	lines := append(head, body...)
	for len(lines) < height {
		lines = append(lines, fit("", width))
	}
	return lines[:height]
}

// fit returns text as exactly width columns.
func fit(text string, width int) string {
	text = ansi.Truncate(clean(text), max(0, width), "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// clean removes control sequences for the terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ReplaceAll(ansi.Strip(text), "\t", " "))
}

func splitLines(text []byte) []string {
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
}
