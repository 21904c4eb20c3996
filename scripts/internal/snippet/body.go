package snippet

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"regexp"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

var output = regexp.MustCompile(`(?i)^[[:space:]]*(unordered )?output:`)

// Body returns the body of the Example function as a README shows it: formatted
// from the first column, and without the comment that holds the expected output.
// The example is named by directory and function, as in "core/lru.ExampleNew".
func Body(t *repo.Tree, example string) (string, error) {
	dot := strings.LastIndexByte(example, '.')
	if dot < 0 || !strings.HasPrefix(example[dot+1:], "Example") {
		return "", fmt.Errorf("%q does not name an example", example)
	}
	dir, name := example[:dot], example[dot+1:]
	for _, d := range t.Package(dir).Decls {
		if f, ok := d.Node.(*ast.FuncDecl); ok && d.Name == name && d.Recv == "" && d.File.Test() {
			return body(d.File, f.Body)
		}
	}
	return "", fmt.Errorf("there is no %s in the tests of directory %s", name, dir)
}

func body(file *repo.GoFile, block *ast.BlockStmt) (string, error) {
	end := block.Rbrace
	for _, c := range file.Syntax.Comments {
		if block.Lbrace < c.Pos() && c.End() <= block.Rbrace && output.MatchString(c.Text()) {
			end = c.Pos()
		}
	}
	text, err := format.Source([]byte(strings.TrimSpace(file.Source(block.Lbrace+token.Pos(1), end))))
	return string(text) + "\n", err
}
