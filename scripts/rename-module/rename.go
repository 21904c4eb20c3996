package main

import (
	"bytes"
	"fmt"
	"go/format"
	"go/scanner"
	"go/token"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// current returns the path that all modules of the tree begin with. It is read from
// the tree, not from this program, so that a second run finds nothing to do.
func current(tree *repo.Tree) (string, error) {
	core := tree.Module("core")
	if core == nil {
		return "", fmt.Errorf("there is no module core")
	}
	prefix, ok := strings.CutSuffix(core.Path(), "/core")
	if !ok {
		return "", fmt.Errorf("core/go.mod: the path %s does not end in /core", core.Path())
	}
	return prefix, nil
}

// valid reports whether modules can be called like this, with a directory behind it.
func valid(prefix string) error {
	if err := module.CheckPath(prefix); err != nil {
		return err
	}
	if _, major, ok := module.SplitPathVersion(prefix); !ok || major != "" {
		return fmt.Errorf("%s ends in a version, which belongs behind the directory of a module", prefix)
	}
	return module.CheckPath(prefix + "/core")
}

// rewrite returns the text of a file with the path exchanged.
func rewrite(name string, text []byte, from, to string) ([]byte, error) {
	if !bytes.Contains(text, []byte(from)) || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return text, nil
	}
	switch {
	case path.Ext(name) == ".go":
		return rewriteGo(text, from, to)
	case path.Base(name) == "go.mod":
		return rewriteMod(name, text, from, to)
	}
	return exchange(text, from, to), nil
}

// rewriteGo exchanges the path in the string literals and comments of a Go file, and
// nowhere else. A file that was formatted is formatted again: another path has another
// place among the imports, and another length.
func rewriteGo(src []byte, from, to string) ([]byte, error) {
	var tokens scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	tokens.Init(file, src, nil, scanner.ScanComments)
	var out bytes.Buffer
	start, text := 0, false // of the last token, and whether it is one that changes
	for tok := token.ILLEGAL; tok != token.EOF; {
		var pos token.Pos
		pos, tok, _ = tokens.Scan()
		part := src[start:file.Offset(pos)]
		if text {
			part = exchange(part, from, to)
		}
		out.Write(part)
		start, text = file.Offset(pos), tok == token.STRING || tok == token.COMMENT
	}
	if formatted, err := format.Source(src); err != nil || !bytes.Equal(formatted, src) {
		return out.Bytes(), nil
	}
	return format.Source(out.Bytes())
}

// rewriteMod exchanges the path in a go.mod file, whose lines are sorted by path.
func rewriteMod(name string, text []byte, from, to string) ([]byte, error) {
	text = exchange(text, from, to)
	mod, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	mod.SortBlocks()
	return mod.Format()
}

// exchange returns the text with the path exchanged wherever it is one: as a whole,
// before a slash, or in a sentence, but not as a part of another path.
func exchange(text []byte, from, to string) []byte {
	var out bytes.Buffer
	done := 0
	for {
		i := bytes.Index(text[done:], []byte(from))
		if i < 0 {
			out.Write(text[done:])
			return out.Bytes()
		}
		start, end := done+i, done+i+len(from)
		out.Write(text[done:start])
		if continued(text[:start]) || continues(text[end:]) {
			out.WriteString(from)
		} else {
			out.WriteString(to)
		}
		done = end
	}
}

// continued reports whether what stands before belongs to the same element of a path.
// The letter of an escape such as \t does not.
func continued(before []byte) bool {
	n := len(before)
	escape := n > 1 && before[n-2] == '\\' && strings.IndexByte("abfnrtv", before[n-1]) >= 0
	return n > 0 && inPath(before[n-1]) && !escape
}

// continues reports whether what follows belongs to the same element of a path. The
// dot at the end of a sentence does not, nor does the end of a repository's address.
func continues(after []byte) bool {
	if rest, ok := bytes.CutPrefix(after, []byte(".git")); ok && !continues(rest) {
		return false
	}
	after = bytes.TrimLeft(after, ".")
	return len(after) > 0 && inPath(after[0])
}

// inPath reports whether the byte can be part of an element of a module path.
func inPath(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-_~.", b) >= 0
}
