// Command roles writes the table from which cmd/ephemeral knows what the library does with
// names of signals, lanes and classes:
//
//	go run ./scripts/roles
//
// The table comes from directives in the comments of exported names. README.md of scripts
// lists them. The test fails if the program has to be run, or if a directive is missing.
package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// table is the file that the program writes.
const table = "cmd/ephemeral/internal/roles/table.txt"

func main() {
	command.Main("roles", nil, func(_ context.Context, root string) error { return command.Update(root, os.Stdout, plan) })
}

// plan returns the table, if it changes.
func plan(tree *repo.Tree) (map[string][]byte, error) {
	w := &writer{tree: tree, roles: map[string][]string{}}
	for _, m := range tree.Modules {
		for _, p := range m.Packages {
			if policy.Shown(p.Dir) {
				w.each(p, w.add)
			}
		}
	}
	for _, m := range tree.Modules {
		if m.Dir == "complete" {
			for _, p := range m.Packages {
				w.wrappers(p)
			}
		}
	}
	var lines []string
	for name, roles := range w.roles {
		for _, r := range roles {
			lines = append(lines, name+" "+r+"\n")
		}
	}
	slices.Sort(lines)
	if text := strings.Join(lines, ""); text != string(tree.Text(table)) {
		return map[string][]byte{table: []byte(text)}, errors.Join(w.errs...)
	}
	return nil, errors.Join(w.errs...)
}

// An item is something that a directive can be about: an exported function, method, field,
// constant or variable of the library.
type item struct {
	p        *repo.Package
	decl     repo.Decl
	name     string // "Sink.Has" for methods and fields
	pos      token.Pos
	doc      string              // the whole comment
	comments []*ast.CommentGroup // where directives are
	fn       *ast.FuncType       // of a function or method
	recv     *ast.FieldList      // of a method with a body
	typ      ast.Expr            // of a field
	value    ast.Expr            // of a constant or variable
}

type writer struct {
	tree  *repo.Tree
	roles map[string][]string // by directory and name
	errs  []error
}

// each calls f for each item of the package.
func (w *writer) each(p *repo.Package, f func(item)) {
	for _, d := range p.Decls {
		if d.File.Test() || !ast.IsExported(d.Name) || d.Recv != "" && !ast.IsExported(d.Recv) {
			continue
		}
		it := item{p: p, decl: d, name: d.Name, pos: d.Pos, doc: d.Doc.Text(), comments: []*ast.CommentGroup{d.Doc}}
		switch n := d.Node.(type) {
		case *ast.FuncDecl:
			if d.Recv != "" {
				it.name = d.Recv + "." + d.Name
			}
			it.fn, it.recv, it.comments = n.Type, n.Recv, []*ast.CommentGroup{n.Doc}
			f(it)
		case *ast.ValueSpec:
			if n.Doc != d.Doc {
				it.comments = append(it.comments, n.Doc)
			}
			it.value = d.Value()
			f(it)
		case *ast.TypeSpec:
			for _, field := range d.Members() {
				fn, _ := field.Type.(*ast.FuncType)
				if _, ok := n.Type.(*ast.StructType); ok {
					fn = nil // a field with a function takes no names
				}
				for _, id := range field.Names {
					if ast.IsExported(id.Name) {
						f(item{p: p, decl: d, name: d.Name + "." + id.Name, pos: id.Pos(), doc: field.Doc.Text() + field.Comment.Text(),
							comments: []*ast.CommentGroup{field.Doc}, fn: fn, typ: field.Type})
					}
				}
			}
		}
	}
}

// directives returns the directives of the item, each without its prefix.
func (it item) directives() (all []string) {
	for _, group := range it.comments {
		if group == nil {
			continue
		}
		for _, c := range group.List {
			if text, ok := strings.CutPrefix(c.Text, "//ephemeral:"); ok {
				all = append(all, text)
			}
		}
	}
	return all
}

// words are the directives, with what follows them.
var words = regexp.MustCompile(`^(?:none|view|raised|is|(?:pattern|raises|lane|class|is)(?: \S.*)?|(?:prefix|release|match) .+|defines (?:lane|class)(?: .+)?)$`)

// add writes down the roles of the item, and reports directives that are missing or wrong.
func (w *writer) add(it item) {
	key := it.p.Dir + " " + it.name
	found := it.directives()
	for _, text := range found {
		switch {
		case !words.MatchString(text):
			w.errs = append(w.errs, fmt.Errorf("%s: //ephemeral:%s is not a directive", w.tree.At(it.pos), text))
		case text != "none":
			if it.typ != nil && it.fn == nil && !strings.Contains(text, "{") && text != "raised" {
				text += " {" + it.name + "}"
			}
			text = w.resolve(it, text)
			if rest, ok := strings.CutPrefix(text, "raises "); ok && it.fn == nil && it.typ == nil {
				text = "linked " + rest
			}
			w.roles[key] = append(w.roles[key], text)
		}
	}
	if kind := repo.KindName(it.value); kind != nil {
		text, ok := w.constant(it.decl.File, it.p, kind)
		if !ok {
			w.errs = append(w.errs, fmt.Errorf("%s: the name of %s is not a constant", w.tree.At(it.pos), it.name))
		}
		w.roles[key] = append(w.roles[key], "is "+text)
		if len(found) == 0 && !strings.Contains(text, "*") {
			w.roles[key] = append(w.roles[key], "linked "+text)
		}
	}
	if it.decl.Tok == token.CONST && strings.HasPrefix(it.name, "Signal") && len(found) == 0 {
		if text, ok := w.constant(it.decl.File, it.p, it.value); ok {
			w.roles[key] = append(w.roles[key], "linked "+text)
		}
	}
	if why := w.needs(it); why != "" && len(found) == 0 {
		w.errs = append(w.errs, fmt.Errorf("%s: %s needs a directive, because %s; see scripts/README.md, or write //ephemeral:none", w.tree.At(it.pos), it.name, why))
	}
}

var slot = regexp.MustCompile(`\{([^{}|]+)(\|[^{}]*)?\}`)

// resolve replaces the names in braces: parameters by their numbers, and others by fields
// and constants with their package.
func (w *writer) resolve(it item, text string) string {
	return slot.ReplaceAllStringFunc(text, func(s string) string {
		m := slot.FindStringSubmatch(s)
		if it.fn != nil {
			if m[1] == "recv" {
				return s
			}
			n := 0
			for _, f := range it.fn.Params.List {
				for _, id := range f.Names {
					if id.Name == m[1] {
						return "{#" + strconv.Itoa(n) + "}"
					}
					n++
				}
				if len(f.Names) == 0 {
					n++
				}
			}
		}
		if text, ok := w.constant(it.decl.File, it.p, ast.NewIdent(m[1])); ok {
			return text
		}
		if !hasField(it.p, m[1]) {
			w.errs = append(w.errs, fmt.Errorf("%s: there is no %s", w.tree.At(it.pos), s))
		}
		return "{" + it.p.Dir + " " + m[1] + m[2] + "}"
	})
}

// hasField reports whether the package has a field of that name, like Options.Name.
func hasField(p *repo.Package, name string) bool {
	typ, field, _ := strings.Cut(name, ".")
	return slices.ContainsFunc(p.Decls, func(d repo.Decl) bool {
		return d.Name == typ && slices.ContainsFunc(d.Members(), func(f *ast.Field) bool {
			return slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == field })
		})
	})
}

// constant returns the text of a constant expression in a file of the package.
func (w *writer) constant(f *repo.GoFile, p *repo.Package, x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.Ident:
		for _, d := range p.Decls {
			if value := d.Value(); value != nil && d.Name == x.Name && d.Tok == token.CONST {
				return w.constant(d.File, p, value)
			}
		}
	case *ast.SelectorExpr:
		if dir, ok := strings.CutPrefix(f.Import(repo.TypeName(x.X)), repo.Prefix); ok {
			return w.constant(f, w.tree.Package(dir), x.Sel)
		}
	case *ast.BinaryExpr:
		left, okLeft := w.constant(f, p, x.X)
		right, okRight := w.constant(f, p, x.Y)
		return left + right, okLeft && okRight
	}
	return "", false
}

// wrappers gives the functions and variables of package complete the roles of what they wrap.
func (w *writer) wrappers(p *repo.Package) {
	w.each(p, func(it item) {
		to := it.value
		if fn, ok := it.decl.Node.(*ast.FuncDecl); ok && fn.Body != nil && len(fn.Body.List) == 1 {
			var call ast.Expr
			switch s := fn.Body.List[0].(type) {
			case *ast.ReturnStmt:
				call = s.Results[0]
			case *ast.ExprStmt:
				call = s.X
			}
			if c, ok := call.(*ast.CallExpr); ok {
				to = c.Fun
			}
		}
		for {
			if index, ok := to.(*ast.IndexExpr); ok {
				to = index.X
			} else if index, ok := to.(*ast.IndexListExpr); ok {
				to = index.X
			} else {
				break
			}
		}
		if sel, ok := to.(*ast.SelectorExpr); ok {
			dir := strings.TrimPrefix(it.decl.File.Import(repo.TypeName(sel.X)), repo.Prefix)
			for _, role := range w.roles[dir+" "+sel.Sel.Name] {
				if it.decl.Tok != token.CONST && !strings.HasPrefix(role, "linked ") {
					w.roles[p.Dir+" "+it.name] = append(w.roles[p.Dir+" "+it.name], role)
				}
			}
		}
	})
}
