package molecules

import (
	"fmt"
	"strings"
	"unicode"
)

// Mermaid draws the blueprint as a Mermaid flowchart: its steps with what they await, and,
// dotted, what is compensated when a step fails. The same blueprint gives the same text.
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

// chart writes the nodes and edges of one blueprint. Their ids have a prefix.
type chart struct {
	*strings.Builder
	prefix string
}

func (c chart) draw(b *Blueprint) {
	c.node(round, "on", b.On)
	for i, s := range b.Steps {
		c.node(box, step(i), s.Name)
	}
	c.node(round, "completed", "completed")
	for i, s := range b.Steps {
		if s.Compensate != nil {
			c.node(box, undo(i), "undo "+s.Name)
		}
	}
	c.node(round, "failed", "failed")

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

	before := "failed" // where a failure leads: to the last compensation before the step
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

// The shapes of nodes.
const (
	box   = `["%s"]`
	round = `(["%s"])`
)

func (c chart) node(shape, id, label string) {
	fmt.Fprintf(c, "        %s%s"+shape+"\n", c.prefix, id, escape(label))
}

func (c chart) edge(from, arrow, label, to string) {
	if label != "" {
		arrow += `|"` + escape(label) + `"|`
	}
	fmt.Fprintf(c, "        %s%s %s %s%s\n", c.prefix, from, arrow, c.prefix, to)
}

// escape makes a label that shows text as it is. Letters, digits and a few signs stay; the
// rest is written as character codes, because Mermaid reads labels as Markdown. So is a
// digit at the start, which could begin a list.
func escape(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r), !unicode.IsGraphic(r):
			if out.Len() > 0 {
				out.WriteByte(' ')
			}
		case unicode.IsLetter(r), unicode.IsDigit(r) && out.Len() > 0, strings.ContainsRune(".,:?!=()", r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, "#%d;", r)
		}
	}
	return out.String()
}
