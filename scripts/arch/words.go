package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// words looks for expressions of policy.Words in the comments and strings of Go files, and
// in Markdown outside of code.
func words(t *repo.Tree, report reporter) {
	var patterns []*regexp.Regexp
	for _, w := range policy.Words {
		patterns = append(patterns, regexp.MustCompile(strings.ReplaceAll(w.Pattern, " ", `\s+`)))
	}
	search := func(name string, line int, text string) {
		text = strings.ToLower(text)
		for i, pattern := range patterns {
			if !strings.Contains(text, policy.Words[i].Stem) {
				continue
			}
			for _, at := range pattern.FindAllStringIndex(text, -1) {
				found := strings.TrimLeft(text[at[0]:at[1]], " \t\n-.:;(|*!?")
				where := line + strings.Count(text[:at[1]], "\n") - strings.Count(found, "\n")
				report(fmt.Sprintf("%s:%d", name, where), strings.Join(strings.Fields(found), " "), "write: "+policy.Words[i].Instead)
			}
		}
	}
	for _, name := range t.Files {
		if path.Ext(name) == ".md" {
			search(name, 1, prose(string(t.Text(name))))
		}
	}
	t.GoFiles(func(_ *repo.Module, _ *repo.Package, f *repo.GoFile) {
		eachText(f, func(pos token.Pos, text string) { search(f.Name, t.Line(pos), text) })
	})
}

// code matches code in Markdown: blocks between fences, and spans.
var code = regexp.MustCompile("(?ms)^ {0,3}```.*?^ {0,3}```|^~~~.*?^~~~|`[^`]*`")

// prose returns Markdown without code. The numbers of its lines stay the same.
func prose(markdown string) string {
	return code.ReplaceAllStringFunc(markdown, func(span string) string { return "x" + strings.Repeat("\n", strings.Count(span, "\n")) })
}

// comment matches the beginning of a line of a comment.
var comment = regexp.MustCompile(`(?m)^[ \t]*(?://|/\*)[ \t]?`)

// eachText calls f with every comment and every string of a file.
func eachText(file *repo.GoFile, f func(pos token.Pos, text string)) {
	for _, group := range file.Syntax.Comments {
		f(group.Pos(), comment.ReplaceAllString(file.Source(group.Pos(), group.End()), ""))
	}
	ast.Inspect(file.Syntax, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value) // the parser has checked it
			f(lit.Pos(), text)
		}
		return true
	})
}
