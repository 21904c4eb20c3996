package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// aboutNames matches a comment of a text that may be the name of a signal, or a pattern.
var aboutNames = regexp.MustCompile(`(?i)\b(?:pattern|signal)s?\b`)

// needs says why an item has to have a directive; "" if it need not have one.
func (w *writer) needs(it item) string {
	switch {
	case it.fn != nil:
		lists := []*ast.FieldList{it.recv, it.fn.Params}
		for i, list := range lists {
			if list == nil {
				continue
			}
			for _, f := range list.List {
				switch {
				case i > 0 && texts(f.Type) && (aboutNames.MatchString(it.doc) || slices.ContainsFunc(f.Names, isPattern)):
					return "it has a text parameter and its comment is about signals or patterns"
				case kind(f.Type):
					return "it has a kind"
				}
			}
		}
		if r := it.fn.Results; r != nil && slices.ContainsFunc(r.List, func(f *ast.Field) bool { return kind(f.Type) }) {
			return "it returns a kind"
		}
	case it.typ != nil:
		if texts(it.typ) && aboutNames.MatchString(it.doc) {
			return "it is a text and its comment is about signals or patterns"
		}
	case it.decl.Tok == token.CONST && strings.HasPrefix(it.name, "Signal"):
		if w.extended(it) {
			return "its package raises it with more text behind it"
		}
	}
	return ""
}

func isPattern(id *ast.Ident) bool { return strings.HasSuffix(strings.ToLower(id.Name), "pattern") }

// texts reports whether the type is a string, or a list of strings.
func texts(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "string"
	case *ast.Ellipsis:
		return texts(x.Elt)
	case *ast.ArrayType:
		return texts(x.Elt)
	}
	return false
}

// kind reports whether the type is signals.Kind or signals.Family.
func kind(x ast.Expr) bool {
	_, generic := x.(*ast.IndexExpr)
	return generic && slices.Contains([]string{"Kind", "Family"}, repo.TypeName(x))
}

// extended reports whether the code of the package adds text to the constant.
func (w *writer) extended(it item) (found bool) {
	for _, f := range it.p.Files {
		if f.Test() {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if b, ok := n.(*ast.BinaryExpr); ok && b.Op == token.ADD && repo.TypeName(b.X) == it.name {
				found = true
			}
			return !found
		})
	}
	return found
}
