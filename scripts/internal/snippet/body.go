package snippet

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
)

var output = regexp.MustCompile(`(?i)^[[:space:]]*(unordered )?output:`)

// Body returns the body of the Example function as a README shows it: formatted
// from the first column, and without the comment that holds the expected output.
// The example is named by directory and function, as in "core/lru.ExampleNew".
func Body(fsys fs.FS, example string) (string, error) {
	dot := strings.LastIndexByte(example, '.')
	if dot < 0 || !strings.HasPrefix(example[dot+1:], "Example") {
		return "", fmt.Errorf("%q does not name an example", example)
	}
	dir, name := example[:dot], example[dot+1:]
	tests, err := fs.Glob(fsys, dir+"/*_test.go")
	if err != nil {
		return "", err
	}
	for _, test := range tests {
		src, err := fs.ReadFile(fsys, test)
		if err != nil {
			return "", err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, test, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name && f.Body != nil {
				return body(fset, src, file, f)
			}
		}
	}
	return "", fmt.Errorf("there is no %s in the tests of directory %s", name, dir)
}

func body(fset *token.FileSet, src []byte, file *ast.File, f *ast.FuncDecl) (string, error) {
	end := f.Body.Rbrace
	for _, c := range file.Comments {
		if f.Body.Lbrace < c.Pos() && c.End() <= f.Body.Rbrace && output.MatchString(c.Text()) {
			end = c.Pos()
		}
	}
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	text := bytes.TrimSpace(src[offset(f.Body.Lbrace)+1 : offset(end)])
	text, err := format.Source(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name.Name, err)
	}
	return string(text) + "\n", nil
}
