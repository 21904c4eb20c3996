package repo

import (
	"cmp"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Decl is a name that a package declares outside its functions: a constant, a variable,
// a type, a function or a method.
type Decl struct {
	File *GoFile
	Name string
	Pos  token.Pos
	Doc  *ast.CommentGroup
	Tok  token.Token // CONST, VAR, TYPE or FUNC
	Recv string      // for a method: the name of its type

	// Node is an *ast.FuncDecl, *ast.TypeSpec or *ast.ValueSpec.
	Node ast.Node
}

func declared(f *GoFile, decl ast.Decl) []Decl {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		d := Decl{File: f, Name: decl.Name.Name, Pos: decl.Name.Pos(), Doc: decl.Doc, Tok: token.FUNC, Node: decl}
		if decl.Recv != nil {
			d.Recv = TypeName(decl.Recv.List[0].Type)
		}
		return []Decl{d}
	case *ast.GenDecl:
		var all []Decl
		single := (*ast.CommentGroup)(nil)
		if !decl.Lparen.IsValid() {
			single = decl.Doc
		}
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				all = append(all, Decl{f, spec.Name.Name, spec.Pos(), first(spec.Doc, decl.Doc), token.TYPE, "", spec})
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					all = append(all, Decl{f, name.Name, name.Pos(), first(spec.Doc, spec.Comment, single), decl.Tok, "", spec})
				}
			}
		}
		return all
	}
	return nil
}

// Value returns the value of a constant or a variable; nil if none is written for it.
func (d Decl) Value() ast.Expr {
	if spec, ok := d.Node.(*ast.ValueSpec); ok {
		if i := slices.IndexFunc(spec.Names, func(id *ast.Ident) bool { return id.Name == d.Name }); i < len(spec.Values) {
			return spec.Values[i]
		}
	}
	return nil
}

// Signal returns the name of the signal that a constant Signal, a kind or a family is; nil for other declarations.
func (d Decl) Signal() ast.Expr {
	if name := KindName(d.Value()); name != nil {
		return name
	} else if d.Tok == token.CONST && strings.HasPrefix(d.Name, "Signal") {
		return d.Value()
	}
	return nil
}

// KindName returns the argument if the expression is a call of signals.NewKind or signals.NewFamily.
func KindName(x ast.Expr) ast.Expr {
	if call, ok := x.(*ast.CallExpr); ok && len(call.Args) == 1 {
		if index, ok := call.Fun.(*ast.IndexExpr); ok && slices.Contains([]string{"NewKind", "NewFamily"}, TypeName(index.X)) {
			return call.Args[0]
		}
	}
	return nil
}

// Members returns the fields of a struct type or the methods of an interface type.
func (d Decl) Members() []*ast.Field {
	if spec, ok := d.Node.(*ast.TypeSpec); ok {
		switch t := spec.Type.(type) {
		case *ast.StructType:
			return t.Fields.List
		case *ast.InterfaceType:
			return t.Methods.List
		}
	}
	return nil
}

// first returns the first comment that has text beside directives, or else the first comment.
func first(comments ...*ast.CommentGroup) *ast.CommentGroup {
	var any *ast.CommentGroup
	for _, c := range comments {
		if c.Text() != "" {
			return c
		}
		any = cmp.Or(any, c)
	}
	return any
}

// TypeName returns T for T, *T, T[...] and p.T; "" for other types.
func TypeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return TypeName(x.X)
	case *ast.IndexExpr:
		return TypeName(x.X)
	case *ast.IndexListExpr:
		return TypeName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// major matches the end of a path that names a major version.
var major = regexp.MustCompile(`[/.]v[0-9]+$`)

// Import returns the path of the package that has this name in the file; "" if there is
// none. If the import has no name, the name is guessed from the path.
func (f *GoFile) Import(name string) string {
	for i, spec := range f.Syntax.Imports {
		called := path.Base(major.ReplaceAllString(f.Imports[i], ""))
		if spec.Name != nil {
			called = spec.Name.Name
		}
		if called == name {
			return f.Imports[i]
		}
	}
	return ""
}
