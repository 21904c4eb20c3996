package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// eachExport calls f for every exported name and method that module complete shows.
func eachExport(t *repo.Tree, f func(p *repo.Package, d repo.Decl)) {
	for _, m := range t.Modules {
		for _, p := range m.Packages {
			for _, d := range p.Decls {
				if policy.Shown(p.Dir) && ast.IsExported(d.Name) && !d.File.Test() {
					f(p, d)
				}
			}
		}
	}
}

// called returns the name of a declaration as users write it.
func called(p *repo.Package, d repo.Decl) string {
	if d.Recv != "" {
		return path.Base(p.Dir) + "." + d.Recv + "." + d.Name
	}
	return path.Base(p.Dir) + "." + d.Name
}

// options checks the names of options, and that one method checks their values.
func options(t *repo.Tree, report reporter) {
	eachExport(t, func(p *repo.Package, d repo.Decl) {
		if !strings.HasSuffix(d.Name, "Options") || d.Members() == nil {
			return
		}
		if !slices.ContainsFunc(p.Decls, func(m repo.Decl) bool { return m.Recv == d.Name && m.Name == "resolved" }) {
			report(t.At(d.Pos), called(p, d)+" has no method resolved", "return the options with defaults, and an error, from a method resolved")
		}
		for _, f := range d.Members() {
			for _, field := range f.Names {
				if want := policy.OptionNames[field.Name]; want != "" {
					report(t.At(field.Pos()), called(p, d)+"."+field.Name+" has a name of its own", "call it "+want)
				}
			}
		}
	})
}

var signalName = regexp.MustCompile(`^(?:[a-z0-9_]+\.)*([a-z0-9_]+)$`)

// signalNames checks the values of constants whose names begin with Signal, and of exported kinds,
// and that the README beside them lists them.
func signalNames(t *repo.Tree, report reporter) {
	eachExport(t, func(p *repo.Package, d repo.Decl) {
		lit, ok := d.Signal().(*ast.BasicLit)
		if !ok {
			return
		}
		text, _ := strconv.Unquote(lit.Value) // the parser has checked it
		name := strings.TrimSuffix(text, ":*")
		found := signalName.FindStringSubmatch(name)
		readme := string(t.Text(path.Join(p.Dir, "README.md")))
		switch where := t.At(d.Pos); {
		case strings.ContainsAny(name, "*,"): // several names
		case found == nil:
			report(where, name+" is not in lower case with dots", "rename it")
		case !strings.HasSuffix(found[1], "ed") && !slices.Contains(policy.SignalStates, found[1]):
			report(where, name+" does not end in a past tense or a state", "rename it, or add the state to policy.SignalStates")
		case readme != "" && !strings.Contains(readme, "`"+name) && !strings.Contains(readme, "."+found[1]+"`"):
			report(where, name+" is not in the README", "list it there, at least with its end, as in `.failed`")
		}
	})
}

// oneName checks that one package alone writes the name of a signal: as a constant Signal or
// Command, or where it makes a kind or a family. A family has all names of its pattern.
func oneName(t *repo.Tree, report reporter) {
	type made struct{ dir, name, where string }
	var all []made
	t.GoFiles(func(_ *repo.Module, p *repo.Package, file *repo.GoFile) {
		if !policy.Shown(p.Dir) || file.Test() {
			return
		}
		add := func(x ast.Expr) {
			if lit, ok := x.(*ast.BasicLit); ok {
				text, _ := strconv.Unquote(lit.Value) // the parser has checked it
				for name := range strings.SplitSeq(text, ",") {
					all = append(all, made{p.Dir, strings.TrimRight(strings.TrimSpace(name), ".:"), t.At(lit.Pos())})
				}
			}
		}
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, x := range n.Values {
					if name := n.Names[i].Name; strings.HasPrefix(name, "Signal") || strings.HasPrefix(name, "Command") {
						add(x)
					}
				}
			case *ast.CallExpr:
				add(repo.KindName(n))
			}
			return true
		})
	})
	for i, a := range all {
		for j, b := range all {
			begin, _, family := strings.Cut(b.name, "*")
			if a.dir != b.dir && (a.name == b.name && j < i || family && a.name != b.name && strings.HasPrefix(a.name, begin)) {
				report(a.where, a.name+" is a name of "+b.dir+" as well, at "+b.where, "rename one, or use the constant of the other if meaning and payload are the same")
			}
		}
	}
}

// errorText matches the text of a new error.
var errorText = regexp.MustCompile(`\b(?:errors\.New|fmt\.Errorf)\(["\x60]([^"\x60]*)`)

// errorTexts checks that texts of errors begin with the package, or with another error.
func errorTexts(t *repo.Tree, report reporter) {
	t.GoFiles(func(_ *repo.Module, p *repo.Package, file *repo.GoFile) {
		if !policy.Shown(p.Dir) || file.Test() {
			return
		}
		prefix := path.Base(p.Dir) + ": "
		for i, line := range strings.Split(file.Source(file.Syntax.FileStart, file.Syntax.FileEnd), "\n") {
			found := errorText.FindStringSubmatch(line)
			if found != nil && !strings.HasPrefix(strings.TrimSpace(line), "//") && !strings.HasPrefix(found[1], prefix) && !strings.HasPrefix(found[1], "%w") {
				report(fmt.Sprintf("%s:%d", file.Name, i+1), file.Name+" has an error with text "+strconv.Quote(found[1]), "begin it with "+prefix)
			}
		}
	})
}

// examples checks that each exported type has an example, or is named in an example of its
// package, or is returned by a function that such an example names.
func examples(t *repo.Tree, report reporter) {
	used := map[*repo.Package]map[string]bool{}
	eachExport(t, func(p *repo.Package, d repo.Decl) {
		if used[p] == nil {
			used[p] = namesInExamples(p)
		}
		if d.Tok == token.TYPE && !used[p][d.Name] {
			report(t.At(d.Pos), called(p, d)+" is in no example", "write one, or use it in one")
		}
	})
}

// namesInExamples returns the names in files of examples, and the types that functions and
// methods with such names return.
func namesInExamples(p *repo.Package) map[string]bool {
	names := map[string]bool{}
	for _, f := range p.Files {
		if policy.Matches("example*_test.go", path.Base(f.Name)) {
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					typ, _, _ := strings.Cut(strings.TrimPrefix(id.Name, "Example"), "_") // ExampleType_Method
					names[id.Name], names[typ] = true, true
				}
				return true
			})
		}
	}
	for _, d := range p.Decls {
		if fn, ok := d.Node.(*ast.FuncDecl); ok && names[d.Name] && fn.Type.Results != nil && !d.File.Test() {
			for _, result := range fn.Type.Results.List {
				names[repo.TypeName(result.Type)] = true
			}
		}
	}
	return names
}
