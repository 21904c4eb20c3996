package molecules_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A chart of several blueprints has a part for each. See the example for the parts.
func TestMermaid(t *testing.T) {
	blueprints := []molecules.Blueprint{
		{Name: "order", On: "a?, b.c", When: func(signals.Signal) bool { return true }, Steps: []molecules.Step{{Name: "pay", Await: "go"}}},
		{Name: `"] end #1; <b> &`, On: "a", Steps: []molecules.Step{{Name: "`x`\ny", Do: quick, Compensate: quick}}},
	}
	r := newRunner(newSink(), molecules.Options{}, blueprints...)
	first, second := blueprints[0].Mermaid(), strings.ReplaceAll(blueprints[1].Mermaid(), "m0", "m1")
	assert.Equal(t, first+strings.TrimPrefix(second, "flowchart TD\n"), r.Mermaid())
	assert.Contains(t, first, `m0on -->|"when, go"| m0s0`)
	assert.Contains(t, second, `subgraph m1["#34;#93; end #35;1#59; #60;b#62; #38;"]`)
	assert.Contains(t, second, `m1u0["undo #96;x#96; y"]`)
}

// Mermaid reads labels as Markdown: characters with a meaning in Markdown are escaped.
func TestMermaidLabelsAreNotMarkdown(t *testing.T) {
	for name, want := range map[string]string{
		"a.*, b.*":     "a.#42;, b.#42;",
		"_a_":          "#95;a#95;",
		"1. order":     "#49;. order",
		" - a":         "#45; a",
		"\x00+ a":      "#43; a",
		"send 2. (b)":  "send 2. (b)",
		"http://a?b=c": "http:#47;#47;a?b=c",
	} {
		text := molecules.Blueprint{Name: name, On: name, Steps: []molecules.Step{{Name: name, Await: "go"}}}.Mermaid()
		assert.Contains(t, text, `m0["`+want+`"]`)
		assert.Contains(t, text, `m0on(["`+want+`"])`)
		assert.Contains(t, text, `m0s0["`+want+`"]`)
	}
}

// With any names, each line has one of a few forms, and the text of a label never ends it.
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
