package main

import (
	"bytes"
	"fmt"
	"go/format"
	"path"
	"regexp"
	"unicode/utf8"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// valid returns an error if the path of a module cannot begin with prefix.
func valid(prefix string) error {
	if err := module.CheckPath(prefix); err != nil {
		return err
	}
	if _, major, ok := module.SplitPathVersion(prefix); !ok || major != "" {
		return fmt.Errorf("%s ends in a version, but a version belongs behind the directory of a module", prefix)
	}
	return module.CheckPath(prefix + "/core")
}

// rewrite returns the text of a file with the path replaced. Go files are formatted again,
// because another path has another place among the imports and another length. So are
// go.mod files, whose lines are sorted by path.
func rewrite(name string, text []byte, from, to string) ([]byte, error) {
	if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return text, nil
	}
	after := replace(text, from, to)
	switch {
	case bytes.Equal(after, text):
	case path.Ext(name) == ".go":
		if formatted, err := format.Source(after); err == nil {
			return formatted, nil
		}
	case path.Base(name) == "go.mod":
		mod, err := modfile.Parse(name, after, nil)
		if err != nil {
			return nil, err
		}
		mod.SortBlocks()
		return mod.Format()
	}
	return after, nil
}

var (
	// before matches the text that may stand directly before a path: a character that is
	// never part of a path, or an escape such as \t.
	before = regexp.MustCompile(`(?:^|\\[abfnrtv]|[^-\w.~])$`)
	// after matches the text that may follow a path: another element, the end of the
	// address of a git repository or the dots of a sentence, but not the rest of a longer
	// element.
	after = regexp.MustCompile(`^(?:\.git)?\.*(?:$|[^-\w.~])`)
)

// replace returns the text with the path replaced where it is not a part of another path.
func replace(text []byte, from, to string) []byte {
	var out bytes.Buffer
	done := 0
	for _, found := range regexp.MustCompile(regexp.QuoteMeta(from)).FindAllIndex(text, -1) {
		at, end := found[0], found[1]
		if before.Match(text[max(0, at-2):at]) && after.Match(text[end:]) {
			out.Write(text[done:at])
			out.WriteString(to)
			done = end
		}
	}
	out.Write(text[done:])
	return out.Bytes()
}
