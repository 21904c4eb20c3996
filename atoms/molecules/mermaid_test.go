package molecules_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
)

const golden = `flowchart TD
    subgraph m0["order"]
        m0on(["order.placed"])
        m0s0["reserve"]
        m0s1["check"]
        m0s2["pay"]
        m0s3["ship"]
        m0completed(["completed"])
        m0u0["undo reserve"]
        m0u2["undo pay"]
        m0failed(["failed"])
        m0on -->|"when"| m0s0
        m0s0 --> m0s1
        m0s1 --> m0s2
        m0s2 -->|"payment.settled, paid:*"| m0s3
        m0s3 --> m0completed
        m0s0 -.->|"fails"| m0failed
        m0u0 -.-> m0failed
        m0s1 -.->|"fails"| m0u0
        m0s2 -.->|"fails"| m0u0
        m0u2 -.-> m0u0
        m0s3 -.->|"fails"| m0u2
    end
    subgraph m1["#34;#93; end #35;1#59; #60;b#62; #38;"]
        m1on(["a?, b.*"])
        m1s0["#96;x#96; y"]
        m1completed(["completed"])
        m1failed(["failed"])
        m1on -->|"when, go"| m1s0
        m1s0 --> m1completed
        m1s0 -.->|"fails"| m1failed
    end
`

func TestMermaid(t *testing.T) {
	yes := func(core.Signal) bool { return true }
	blueprints := []molecules.Blueprint{
		{Name: "order", On: "order.placed", When: yes, Steps: []molecules.Step{
			{Name: "reserve", Do: quick, Compensate: quick},
			{Name: "check", Do: quick},
			{Name: "pay", Do: quick, Compensate: quick},
			{Name: "ship", Do: quick, Await: "payment.settled, paid:*"},
		}},
		{Name: `"] end #1; <b> &`, On: "a?, b.*", When: yes, Steps: []molecules.Step{{Name: "`x`\ny", Await: "go"}}},
	}
	r := newRunner(t, newSink(), molecules.Options{}, blueprints...)
	assert.Equal(t, golden, r.Mermaid())
	assert.Equal(t, golden, r.Mermaid(), "once more")
	require.NoError(t, r.Close())

	one, _, _ := strings.Cut(golden, "    subgraph m1")
	assert.Equal(t, one, blueprints[0].Mermaid())
}

// Mermaid renders labels as Markdown, of which it knows but a part: what is no text
// to it is missing in the chart.
func TestMermaidLabelsAreNoMarkdown(t *testing.T) {
	for name, want := range map[string]string{
		"*":          "#42;",
		"a.*, b.*":   "a.*, b.#42;",
		"_a_":        "_a#95;",
		"charge_all": "charge_all",
		"1. order":   "#49;. order",
		" - a":       " #45; a",
		"\x00+ a":    " #43; a",
		"re-send 2.": "re-send 2.",
		"http://a/b": "http:/#47;a/b",
	} {
		text := molecules.Blueprint{Name: name, On: name, Steps: []molecules.Step{{Name: name, Await: "go"}}}.Mermaid()
		assert.Contains(t, text, `m0["`+want+`"]`)
		assert.Contains(t, text, `m0on(["`+want+`"])`)
		assert.Contains(t, text, `m0s0["`+want+`"]`)
	}
}

// Whatever the names are, each line is one of a few forms, and the text of a label
// never ends it.
func FuzzMermaid(f *testing.F) {
	f.Add("order", "order.placed", "pay")
	f.Add(`"]`, "|", "#quot;\x00\n\u2028end")
	line := regexp.MustCompile(`^(flowchart TD|    end|    subgraph m0\[L\]|        m0\w+(\[L\]|\(\[L\]\)| (-->|-\.->)(\|L\|)? m0\w+))$`)
	label := regexp.MustCompile(`"[^"\x60<>&|\[\]\n]*"`)
	f.Fuzz(func(t *testing.T, name, on, step string) {
		b := molecules.Blueprint{Name: name, On: on, Steps: []molecules.Step{{Name: step, Await: on, Compensate: quick}, {Name: step}}}
		text := b.Mermaid()
		assert.Len(t, strings.Split(text, "\n"), 16)
		for l := range strings.Lines(text) {
			l = label.ReplaceAllString(strings.TrimSuffix(l, "\n"), "L")
			assert.Regexp(t, line, l)
		}
	})
}
