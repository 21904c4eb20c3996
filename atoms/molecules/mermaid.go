package molecules

import (
	"fmt"
	"strings"
	"unicode"
)

// Mermaid draws the blueprint as a Mermaid flowchart. It shows the steps and the signals that they
// await. Dotted arrows show the compensations after a failure. The same blueprint gives the same
// text.
func (b Blueprint) Mermaid() string {
	c := chart("m0")
	return fmt.Sprintf("flowchart TD\n    subgraph %s[\"%s\"]\n%s    end\n", c, escape(b.Name), c.draw(&b))
}

// chart draws one blueprint. It is the prefix of the ids.
type chart string

func (c chart) draw(b *Blueprint) string {
	var steps, undos, flow, failures string
	from, before := "on", "failed" // before is where a failure leads: to the last compensation before the step
	for i, s := range b.Steps {
		step, undo, label := fmt.Sprint("s", i), fmt.Sprint("u", i), s.Await
		if i == 0 && b.When != nil {
			label = strings.TrimSuffix("when, "+s.Await, ", ")
		}
		steps += c.node(box, step, s.Name)
		flow += c.edge(from, "-->", label, step)
		failures += c.edge(step, "-.->", "fails", before)
		if s.Compensate != nil {
			undos += c.node(box, undo, "undo "+s.Name)
			failures += c.edge(undo, "-.->", "", before)
			before = undo
		}
		from = step
	}
	return c.node(round, "on", b.On) + steps + c.node(round, "completed", "completed") + undos +
		c.node(round, "failed", "failed") + flow + c.edge(from, "-->", "", "completed") + failures
}

// The shapes of nodes.
const (
	box   = `["%s"]`
	round = `(["%s"])`
)

func (c chart) node(shape, id, label string) string {
	return fmt.Sprintf("        %s%s"+shape+"\n", c, id, escape(label))
}

func (c chart) edge(from, arrow, label, to string) string {
	if label != "" {
		arrow += `|"` + escape(label) + `"|`
	}
	return fmt.Sprintf("        %s%s %s %s%s\n", c, from, arrow, c, to)
}

// escape makes a label that shows text as it is. Mermaid reads labels as Markdown. So all
// characters except letters, digits and a few signs are written as character codes. A digit at the
// start is written as a code too, because it could begin a list.
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
