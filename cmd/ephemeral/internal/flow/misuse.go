package flow

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// drops writes down a result that is not kept: a view, or the release of a signal that is held
// without a lease, which a helper may return.
func (w *World) drops(d drop) {
	f := Fact{Pos: d.Pos()}
	fn, _ := Object(d.Fun, d.info).(*types.Func)
	if fn == nil {
		return
	}
	f.API = fn.Name()
	if w.isView(fn) {
		f.Verb = "view"
		d.unit.add(f)
		return
	}
	for _, from := range w.trace(expr{d.CallExpr, d.info}, max(0, d.n)).from {
		c, ok := from.Expr.(*ast.CallExpr)
		if !ok || d.unit.Test {
			continue
		}
		for _, r := range w.rolesOf(Object(c.Fun, from.info)) {
			lease := w.instance(r, &call{CallExpr: c, info: from.info}, nil, c.Pos())
			if r.Verb == "release" && len(lease) > 0 && !slices.ContainsFunc(lease, func(t Text) bool { return t.S != "0" && !strings.HasPrefix(t.S, "-") }) {
				if f.Verb = "release"; c != d.CallExpr {
					f.Helper = c.Pos()
				}
				d.unit.add(f)
			}
		}
	}
}

// calls that wait for the end of operations. The first argument is a context.
var waiting = []string{"Do", "Wait", "Flush", "Drain", "Stop", "WaitIdle"}

// waits writes down a call in a body that waits for its own coordinator with another context
// than that of the body.
func (w *World) waits(u use, f Fact) {
	sel, ok := ast.Unparen(u.call.Fun).(*ast.SelectorExpr)
	if !ok || len(u.call.Args) == 0 || !slices.Contains(waiting, sel.Sel.Name) {
		return
	}
	body, started := u.fn, w.started[u.call.CallExpr]
	for range 8 { // a function that is called where it is written belongs to the one around it
		lit, ok := body.(*ast.FuncLit)
		if !ok || len(w.calls[lit]) != 1 || started {
			break
		}
		c := w.calls[lit][0]
		body, started = c.fn, w.started[c.CallExpr]
	}
	if started || body == nil {
		return
	}
	var at ast.Node
	switch fn := body.(type) {
	case *ast.FuncLit:
		at = fn.Body
	case *types.Func:
		at = w.units[fn].Node.(*ast.FuncDecl).Body
	}
	in := inside{w, body, at, map[types.Object]bool{}}
	if made, ok := in.owner(expr{sel.X, u.call.info}); ok && in.foreign(expr{u.call.Args[0], u.call.info}) {
		f.Verb, f.API = "waits", sel.Sel.Name
		opts, _ := w.options(made)
		f.On = cmp.Or(w.name(opts, w.holder[made.CallExpr]), types.ExprString(sel.X))
		u.unit.add(f)
	}
}

// inside is a place in a function.
type inside struct {
	w    *World
	body any
	node ast.Node
	seen map[types.Object]bool
}

// declares reports whether a variable is one of the function, and not its receiver.
func (in inside) declares(o types.Object) bool {
	p, isParam := in.w.params[o]
	return isParam && p.fn == in.body && p.n >= 0 || in.node.Pos() <= o.Pos() && o.Pos() < in.node.End()
}

// owner returns the call that makes the coordinator behind an expression, if the function is its
// body. A field counts only if it is one of the receiver, or of a variable around the function:
// that of another variable may belong to another coordinator. So may a parameter or a result.
func (in inside) owner(x expr) (made call, ok bool) {
	t := in.w.trace(x, 0)
	if slices.ContainsFunc(t.through, in.w.several) || slices.ContainsFunc(t.fields, func(of expr) bool {
		id, ok := ast.Unparen(of.Expr).(*ast.Ident)
		return !ok || in.declares(Object(id, of.info))
	}) {
		return call{}, false
	}
	for _, from := range t.from {
		e, _ := from.Expr.(*ast.CallExpr)
		if e == nil {
			continue
		}
		made := call{CallExpr: e, info: from.info}
		dir, name := in.w.key(Object(e.Fun, from.info))
		_, method, _ := strings.Cut(name, ".")
		if method == "Submit" || method == "Group" {
			made, ok = in.owner(made.receiver())
		} else {
			ok = dir != "" && strings.HasPrefix(name, "New") && slices.ContainsFunc(e.Args, func(arg ast.Expr) bool { return in.runs(expr{arg, from.info}) })
		}
		if ok {
			return made, true
		}
	}
	return call{}, false
}

// several reports whether something may stand for several values at once: a parameter or a function.
func (w *World) several(o types.Object) bool {
	_, isParam := w.params[o]
	_, isFunc := o.(*types.Func)
	return isParam || isFunc
}

// runs reports whether an argument is the function, or a wrapper of the library around it.
func (in inside) runs(x expr) bool {
	if c, ok := ast.Unparen(x.Expr).(*ast.CallExpr); ok {
		dir, name := in.w.key(Object(c.Fun, x.info))
		return dir != "" && name == "Wrap" && slices.ContainsFunc(c.Args, func(arg ast.Expr) bool { return in.runs(expr{arg, x.info}) })
	}
	return slices.Contains(in.w.functions(x), in.body)
}

// foreign reports whether a context is not that of the body: it is context.Background(), or made
// from it, or a variable from outside.
func (in inside) foreign(x expr) bool {
	switch e := ast.Unparen(x.Expr).(type) {
	case *ast.CallExpr:
		fn, ok := Object(e.Fun, x.info).(*types.Func)
		if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "context" {
			return false
		}
		return len(e.Args) == 0 || in.foreign(expr{e.Args[0], x.info})
	case *ast.Ident:
		v, ok := Object(e, x.info).(*types.Var)
		if _, isParam := in.w.params[v]; ok && !in.declares(v) && types.IsInterface(v.Type()) {
			return true
		} else if !ok || isParam || in.seen[v] {
			return false
		}
		in.seen[v] = true
		return len(in.w.assigned[v]) > 0 && !slices.ContainsFunc(in.w.assigned[v], func(a value) bool {
			return a.part != whole && (a.part != result || a.n != 0) || !in.foreign(a.expr)
		})
	}
	return false
}
