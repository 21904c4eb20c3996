package arch

import (
	"go/ast"
	"slices"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// guarded finds direct calls of methods of errors: err.Error(), and errors.Is, As and AsType.
func guarded(t *repo.Tree, report reporter) {
	below := func(dir string, roots []string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return within(dir, root) })
	}
	t.GoFiles(func(_ *repo.Module, p *repo.Package, file *repo.GoFile) {
		if file.Test() || !below(p.Dir, policy.Guarded) || below(p.Dir, policy.Unguarded) {
			return
		}
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun := call.Fun
			if of, ok := fun.(*ast.IndexExpr); ok { // errors.AsType[E](err)
				fun = of.X
			}
			sel, ok := fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := sel.X.(*ast.Ident)
			switch name := sel.Sel.Name; {
			case name == "Error" && len(call.Args) == 0:
				report(file.Name, "calls the method Error of an error", "guard.Text(err)")
			case x != nil && x.Name == "errors" && slices.Contains([]string{"Is", "As", "AsType"}, name):
				report(file.Name, "calls errors."+name, "use guard.Is, guard.As or guard.Ask")
			}
			return true
		})
	})
}
