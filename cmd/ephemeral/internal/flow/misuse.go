package flow

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
)

// drops writes down a result that is not kept: a view, or the release of a signal that is held
// without a lease, which a helper may return.
func (w *World) drops(d *call) {
	f := Fact{Verb: "view", Pos: d.Pos()}
	for _, fn := range w.functions(d.of(d.Fun)) {
		if fn, ok := fn.(*types.Func); ok {
			f.API = fn.Name()
			if w.isView(fn) {
				d.unit.add(f)
				return
			}
		}
	}
	for _, from := range w.trace(d.expr, nil).from {
		c := callOf(from.expr)
		if c == nil || d.unit.Test {
			continue
		}
		for _, fn := range w.functions(c.of(c.Fun)) {
			o, _ := fn.(types.Object)
			r := w.roleOf(o, "release")
			if r == nil {
				continue
			}
			if lease := w.instance(*r, c, from.frame, c.Pos()); len(lease) > 0 && !slices.ContainsFunc(lease, lasts) {
				if f.Verb = "release"; c.CallExpr != d.CallExpr {
					f.Helper = c.Pos()
				}
				d.unit.add(f)
			}
		}
	}
}

// lasts reports whether a lease is one.
func lasts(lease Text) bool { return lease.S != "0" && !strings.HasPrefix(lease.S, "-") }

// calls that wait for the end of operations. The first argument is a context.
var waiting = []string{"Do", "Wait", "Flush", "Drain", "Stop", "WaitIdle"}

// waits writes down a call in a body that waits for its own coordinator with another context
// than that of the body.
func (w *World) waits(c *call, f Fact) {
	if c.on.Expr == nil || len(c.args) == 0 || !slices.Contains(waiting, f.API) {
		return
	}
	body, started := c.fn, w.started[c.CallExpr]
	for range 8 { // a function that is called where it is written belongs to the one around it
		lit, ok := body.(*ast.FuncLit)
		if !ok || len(w.calls[lit]) != 1 || started {
			break
		}
		around := w.calls[lit][0]
		body, started = around.fn, w.started[around.CallExpr]
	}
	if started || body == nil {
		return
	}
	node, _ := body.(ast.Node)
	if fn, ok := body.(*types.Func); ok {
		node = w.units[fn][0].Node
	}
	in := inside{w, body, node, map[*ast.CallExpr]bool{}}
	if made := in.owner(c.on); made != nil && in.foreign(c.args[0]) {
		f.Verb = "waits"
		f.On = cmp.Or(w.name(w.options(made), w.holder[made.CallExpr]), types.ExprString(c.on.Expr))
		c.unit.add(f)
	}
}

// inside is a place in a function.
type inside struct {
	w    *World
	body any
	node ast.Node
	seen map[*ast.CallExpr]bool
}

// declares reports whether a variable is one of the function, and not its receiver.
func (in inside) declares(o types.Object) bool {
	p := in.w.params[o]
	return in.node.Pos() <= o.Pos() && o.Pos() < in.node.End() && (p.fn != in.body || p.n != roles.Recv)
}

// owner returns the call that makes the coordinator behind an expression, if the function is its
// body. A field counts only if it is one of the receiver, or of a variable around the function:
// that of another variable may belong to another coordinator. So may a parameter or a result.
func (in inside) owner(x expr) (made *call) {
	t := in.w.trace(x, nil)
	if t.several || slices.ContainsFunc(t.fields, in.other) {
		return nil
	}
	for _, from := range t.from {
		made := callOf(from.expr)
		if made == nil {
			continue
		}
		dir, name := in.w.key(made.callee)
		_, method, _ := strings.Cut(name, ".")
		if method == "Submit" || method == "Group" {
			made = in.owner(made.on)
		} else if dir == "" || !strings.HasPrefix(name, "New") || !slices.ContainsFunc(made.args, in.runs) {
			continue
		}
		if made != nil {
			return made
		}
	}
	return nil
}

// other reports whether what has a field may be another object than the one around the function.
func (in inside) other(of expr) bool {
	id, ok := ast.Unparen(of.Expr).(*ast.Ident)
	if !ok {
		return true
	}
	o := Object(id, of.info)
	p, isParam := in.w.params[o]
	return in.declares(o) || isParam && p.n != roles.Recv || !isParam && len(in.w.trace(of, nil).fields) > 0
}

// runs reports whether an argument is the function, or a wrapper of the library around it.
func (in inside) runs(x expr) bool {
	if c := callOf(x); c != nil {
		dir, name := in.w.key(c.callee)
		return dir != "" && name == "Wrap" && slices.ContainsFunc(c.args, in.runs)
	}
	return slices.Contains(in.w.functions(x), in.body)
}

// foreign reports whether a context is not that of the body: it is context.Background(), or made
// from it, or a variable from outside.
func (in inside) foreign(x expr) bool {
	if v, ok := Object(x.Expr, x.info).(*types.Var); ok && !v.IsField() && !in.declares(v) && types.IsInterface(v.Type()) {
		return true
	}
	t := in.w.trace(x, nil)
	if t.several || len(t.from) == 0 {
		return false
	}
	return !slices.ContainsFunc(t.from, func(from origin) bool {
		c := callOf(from.expr)
		if c == nil || in.seen[c.CallExpr] || !strings.HasPrefix(fullName(c.callee), "context.") {
			return true
		}
		in.seen[c.CallExpr] = true
		return len(c.args) > 0 && !in.foreign(c.args[0])
	})
}
