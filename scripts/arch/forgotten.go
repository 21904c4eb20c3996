package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// effect checks that each option is read outside the method that resolves options.
func effect(t *repo.Tree, report reporter) {
	read := map[*repo.Package]map[string]bool{}
	eachStruct(t, "Options", func(name string, d repo.Decl, _ map[string]bool) {
		p := t.Package(path.Dir(d.File.Name))
		if read[p] == nil {
			read[p] = fieldsRead(p)
		}
		for _, f := range fieldsOf(d) {
			for _, field := range f.Names {
				if ast.IsExported(field.Name) && !read[p][field.Name] {
					report(t.At(field.Pos()), name+"."+field.Name+" does nothing: no code reads it", "make it do what its comment says, or delete it")
				}
			}
		}
	})
}

// fieldsRead returns the names that the code of a package selects. In the method resolved,
// a field counts only if it is assigned to a variable or field of another name.
func fieldsRead(p *repo.Package) map[string]bool {
	names := map[string]bool{}
	selected := func(in ast.Node, to string) {
		ast.Inspect(in, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name != to {
				names[sel.Sel.Name] = true
			}
			return true
		})
	}
	for _, d := range p.Decls {
		fn, ok := d.Node.(*ast.FuncDecl)
		switch {
		case !ok || d.File.Test():
		case d.Name != "resolved":
			selected(fn, "")
		default:
			ast.Inspect(fn, func(n ast.Node) bool {
				if to, ok := n.(*ast.AssignStmt); ok {
					if sel, ok := to.Lhs[0].(*ast.SelectorExpr); ok {
						selected(to.Rhs[0], sel.Sel.Name)
					}
				}
				return true
			})
		}
	}
	return names
}

// reasons checks that each constant of type ReasonKind has a text in method text of Reason.
func reasons(t *repo.Tree, report reporter) {
	p := t.Package("core")
	texts := map[string]bool{}
	for _, d := range p.Decls {
		if fn, ok := d.Node.(*ast.FuncDecl); ok && d.Recv == "Reason" && d.Name == "text" {
			ast.Inspect(fn, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					texts[id.Name] = true
				}
				return true
			})
		}
	}
	for _, d := range p.Decls {
		if spec, ok := d.Node.(*ast.ValueSpec); ok && d.Tok == token.CONST && repo.TypeName(spec.Type) == "ReasonKind" && !texts[d.Name] {
			report(t.At(d.Pos), d.Name+" has no text", "add it to the method text of Reason")
		}
	}
}

// closing checks that a package whose types own a timer or a goroutine has a type that can
// end them, and that types with Close and Drain pass the suite of core/coretest.
func closing(t *repo.Tree, report reporter) {
	for _, m := range t.Modules {
		if kind := policy.KindOf(m.Dir); !kind.Published || kind.Tool {
			continue
		}
		for _, p := range m.Packages {
			if !policy.Shown(p.Dir) {
				continue
			}
			owner, closer := "", ""
			drains, examined := false, false
			for _, d := range p.Decls {
				if d.Tok == token.TYPE && !d.File.Test() {
					if of := timers(d); of != "" {
						owner = t.At(d.Pos) + " " + of
					}
					if all := methodsOf(t, p, d.Name); all["Close"] && ast.IsExported(d.Name) {
						closer, drains = d.Name, drains || all["Drain"]
					}
				}
			}
			for _, f := range p.Files {
				examined = examined || f.Test() && strings.Contains(f.Source(f.Syntax.FileStart, f.Syntax.FileEnd), "coretest.RunLifecycle")
			}
			if where, what, ok := strings.Cut(owner, " "); ok && closer == "" {
				report(where, path.Base(p.Dir)+" keeps a "+what+", but no exported type has a method Close", "let Close stop it")
			}
			if drains && !examined && p.Dir != "core" {
				report(p.Dir, path.Base(p.Dir)+"."+closer+" has Close and Drain, but no test runs the suite of core/coretest", "call coretest.RunLifecycle")
			}
		}
	}
}

// timers returns the type of a field that is a timer or a ticker.
func timers(d repo.Decl) string {
	for _, f := range fieldsOf(d) {
		if star, ok := f.Type.(*ast.StarExpr); ok && slices.Contains([]string{"Timer", "Ticker"}, repo.TypeName(star.X)) {
			return repo.TypeName(star.X)
		}
	}
	return ""
}

// announced checks that the changelog names each published module.
func announced(t *repo.Tree, report reporter) {
	for _, m := range policy.Published(t) {
		if name := path.Base(m.Dir); !regexp.MustCompile("`[a-z/]*" + name + "[`/]").Match(t.Text("CHANGELOG.md")) {
			report("CHANGELOG.md", m.Dir+" is not named", "add a line that says what users can do with it: - `"+m.Dir+"`: ...")
		}
	}
}

// link matches a link in Markdown to a file of the repository.
var link = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)

// links checks that links in Markdown lead to files that exist.
func links(t *repo.Tree, report reporter) {
	there := map[string]bool{".": true}
	for _, name := range t.Files {
		for ; name != "."; name = path.Dir(name) {
			there[name] = true
		}
	}
	for _, name := range t.Files {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, found := range link.FindAllStringSubmatch(prose(string(t.Text(name))), -1) {
			if to := path.Join(path.Dir(name), found[1]); !there[to] {
				report(name, "links "+to+", which does not exist", "correct the link")
			}
		}
	}
}
