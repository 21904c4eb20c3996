// Package snippet keeps the Go blocks of Markdown files equal to compiled examples.
//
// An HTML comment on the line directly before a block names its Example function.
// The comment names the directory of the package, from the root of the
// repository, and the function:
//
//	<!-- example: atoms/retry.ExampleRetrier_Do -->
//	```go
//	r, err := retry.New(retry.Options{})
//	...
//	```
//
// The block is the body of the function without its output comment.
package snippet

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// Block is a fenced block of Go in a Markdown file.
type Block struct {
	Line    int    // line of the opening fence, from 1
	Example string // the example in the marker; "" without a marker
	Text    string // between the fences

	start, end int // offsets of Text
}

var (
	marker = regexp.MustCompile(`^<!-- example: (\S+) -->$`)
	fence  = regexp.MustCompile("^ {0,3}(```+|~~~+)[ \t]*([^`]*)$")
)

// Blocks returns the blocks of Go in a Markdown file.
func Blocks(md []byte) []Block {
	var blocks []Block
	var open string   // the fence around the line; "" outside
	var current Block // the present block of Go, if its Line is not 0
	var before string // the last line outside a fence
	offset, number := 0, 0
	end := func(at int) {
		if current.Line != 0 {
			current.end = at
			current.Text = strings.ReplaceAll(string(md[current.start:at]), "\r\n", "\n")
			blocks = append(blocks, current)
		}
		open, current, before = "", Block{}, ""
	}
	for raw := range bytes.Lines(md) {
		number++
		start := offset
		offset += len(raw)
		line := strings.TrimRight(string(raw), "\r\n")
		found := fence.FindStringSubmatch(line)
		switch {
		case open == "" && found != nil:
			open = found[1]
			info, _, _ := strings.Cut(strings.TrimSpace(found[2]), " ")
			if info == "go" || info == "golang" {
				current = Block{Line: number, start: offset}
				if m := marker.FindStringSubmatch(before); m != nil {
					current.Example = m[1]
				}
			}
		case open == "":
			before = line
		case found != nil && strings.HasPrefix(found[1], open) && strings.TrimSpace(found[2]) == "":
			end(start)
		}
	}
	end(len(md)) // a block that is never closed ends with the file
	return blocks
}

// Update returns the Markdown file with the text of every marked block replaced by
// what body returns for its example. A marker without a block below it is an error.
func Update(md []byte, body func(example string) (string, error)) ([]byte, error) {
	var out bytes.Buffer
	done, marked := 0, 0
	for _, b := range Blocks(md) {
		if b.Example == "" {
			continue
		}
		marked++
		text, err := body(b.Example)
		if err != nil {
			return nil, err
		}
		if text == b.Text {
			continue // keep the line endings of the checkout
		}
		out.Write(md[done:b.start])
		out.WriteString(text)
		done = b.end
	}
	for line := range strings.Lines(string(md)) {
		if m := marker.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			if marked--; marked < 0 {
				return nil, fmt.Errorf("a marker has no block of Go below it; the last marker names %q", m[1])
			}
		}
	}
	out.Write(md[done:])
	return out.Bytes(), nil
}
