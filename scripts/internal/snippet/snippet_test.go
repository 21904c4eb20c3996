package snippet

import (
	"errors"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repotest"
)

func TestBlocks(t *testing.T) {
	const md = "# Title\n" +
		"<!-- example: core.Example -->\n```go\na()\n```\n" + // marked
		"<!-- example: core.Example -->\n\n```go\nb()\n```\n" + // a blank line between marker and block
		"```sh\n```go\necho\n```\n" + // a fence inside another
		"````go linenums\n```\nc()\n````\n" + // a longer fence
		"~~~go\nd()\n~~~\n" +
		"<!-- example: core.Example -->\r\n```go\r\ne()\r\n```\r\n" +
		"```go\nf()\n" // never closed
	var got []string
	for _, b := range Blocks([]byte(md)) {
		got = append(got, b.Example+"="+b.Text)
	}
	want := []string{"core.Example=a()\n", "=b()\n", "=```\nc()\n", "=d()\n", "core.Example=e()\n", "=f()\n"}
	if g, w := strings.Join(got, "|"), strings.Join(want, "|"); g != w {
		t.Errorf("got  %q\nwant %q", g, w)
	}
	if first := Blocks([]byte(md))[0].Line; first != 3 {
		t.Errorf("got first block in line %d, want 3", first)
	}
}

func TestBody(t *testing.T) {
	const src = `package lru_test

import "fmt"

// A comment outside.
func ExampleNew() {
	// A comment inside.
	text := ` + "`" + `
	raw, with a tab
` + "`" + `

	if text != "" {
		fmt.Print(text) // output: not this one
	}

	// Output:
	// raw, with a tab
}

func ExampleOld() { fmt.Println("one line") }
`
	tree := repotest.Load(t, map[string]string{
		"core/go.mod":              "module core\n",
		"core/lru/a_test.go":       "package lru\n",
		"core/lru/example_test.go": src,
		"core/lru/lru.go":          "package lru\n\nfunc ExampleInCode() {}\n",
	})
	tests := []struct{ example, want string }{
		{"core/lru.ExampleNew", "// A comment inside.\ntext := `\n\traw, with a tab\n`\n\nif text != \"\" {\n\tfmt.Print(text) // output: not this one\n}\n"},
		{"core/lru.ExampleOld", "fmt.Println(\"one line\")\n"},
		{"core/lru.ExampleInCode", ""},
		{"core/lru.ExampleGone", ""},
		{"core/lru.New", ""},
		{"core/lru", ""},
		{"core/[.Example", ""},
	}
	for _, test := range tests {
		got, err := Body(tree, test.example)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("Body(%q)\ngot  %q, %v\nwant %q", test.example, got, err, test.want)
		}
	}
}

func TestUpdate(t *testing.T) {
	const md = "a\n<!-- example: x.Example -->\n```go\nold\n```\nb\n```go\nunmarked\n```\n<!-- example: y.Example -->\n```go\nsame\n```\nc\n"
	bodies := map[string]string{"x.Example": "new\nlines\n", "y.Example": "same\n"}
	body := func(example string) (string, error) { return bodies[example], nil }

	got, err := Update([]byte(md), body)
	want := strings.Replace(md, "old\n", "new\nlines\n", 1)
	if err != nil || string(got) != want {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
	again, err := Update(got, body)
	if err != nil || string(again) != want {
		t.Errorf("a second update changed it to %q, %v", again, err)
	}

	unknown := errors.New("unknown")
	if _, err := Update([]byte(md), func(string) (string, error) { return "", unknown }); !errors.Is(err, unknown) {
		t.Errorf("got %v, want %v", err, unknown)
	}
	if _, err := Update([]byte(md+"<!-- example: z.Example -->\n\ntext\n"), body); err == nil {
		t.Error("a marker without a block is no error")
	}
}
