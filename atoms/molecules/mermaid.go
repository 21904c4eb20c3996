package molecules

import (
	"fmt"
	"strings"
	"unicode"
)

// Mermaid draws the blueprint as a Mermaid flowchart: its steps with what they
// await, and, dotted, what is undone when one fails. The same blueprint gives the
// same text.
func (b Blueprint) Mermaid() string { return mermaid(&b) }

// Mermaid draws all blueprints of the runner as one Mermaid flowchart.
func (r *Runner) Mermaid() string { return mermaid(r.blueprints...) }

func mermaid(blueprints ...*Blueprint) string {
	var text strings.Builder
	text.WriteString("flowchart TD\n")
	for i, b := range blueprints {
		c := chart{&text, fmt.Sprintf("m%d", i)}
		fmt.Fprintf(&text, "    subgraph %s[\"%s\"]\n", c.prefix, escape(b.Name))
		c.draw(b)
		text.WriteString("    end\n")
	}
	return text.String()
}

// chart writes the nodes and edges of one blueprint, whose ids have a prefix.
type chart struct {
	*strings.Builder
	prefix string
}

func (c chart) draw(b *Blueprint) {
	c.round("on", b.On)
	for i, s := range b.Steps {
		c.box(step(i), s.Name)
	}
	c.round("completed", "completed")
	for i, s := range b.Steps {
		if s.Compensate != nil {
			c.box(undo(i), "undo "+s.Name)
		}
	}
	c.round("failed", "failed")

	from := "on"
	for i, s := range b.Steps {
		var labels []string
		if i == 0 && b.When != nil {
			labels = append(labels, "when")
		}
		if s.Await != "" {
			labels = append(labels, s.Await)
		}
		c.edge(from, "-->", strings.Join(labels, ", "), step(i))
		from = step(i)
	}
	c.edge(from, "-->", "", "completed")

	before := "failed" // where a failure of step i leads: to the undoing of the last step before it that has one
	for i, s := range b.Steps {
		c.edge(step(i), "-.->", "fails", before)
		if s.Compensate != nil {
			c.edge(undo(i), "-.->", "", before)
			before = undo(i)
		}
	}
}

func step(i int) string { return fmt.Sprintf("s%d", i) }
func undo(i int) string { return fmt.Sprintf("u%d", i) }

func (c chart) box(id, label string) {
	fmt.Fprintf(c, "        %s%s[\"%s\"]\n", c.prefix, id, escape(label))
}

func (c chart) round(id, label string) {
	fmt.Fprintf(c, "        %s%s([\"%s\"])\n", c.prefix, id, escape(label))
}

func (c chart) edge(from, arrow, label, to string) {
	if label != "" {
		arrow += `|"` + escape(label) + `"|`
	}
	fmt.Fprintf(c, "        %s%s %s %s%s\n", c.prefix, from, arrow, c.prefix, to)
}

// escape makes text of any kind a label that shows it: what could mean something to
// Mermaid, to HTML, or to Markdown, as which Mermaid renders labels, is written as a
// character code.
func escape(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch before := out.String(); {
		case unicode.IsSpace(r), !unicode.IsGraphic(r):
			out.WriteByte(' ')
		case strings.TrimSpace(before) == "" && (unicode.IsDigit(r) || strings.ContainsRune("+-*", r)), // would begin a list
			strings.ContainsRune("*_", r) && strings.ContainsRune(before, r), // would end an emphasis
			r == '/' && strings.HasSuffix(before, "/"):                       // would make a link
			fmt.Fprintf(&out, "#%d;", r)
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(".,:*?!+-/=()_", r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, "#%d;", r)
		}
	}
	return out.String()
}
