package flow

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
)

// frame is a call of a function: its parameters have the values of this call, and not those
// of all calls.
type frame struct {
	fn    any
	call  *call
	up    *frame // of the caller
	depth int
}

// texts returns what an expression may be. A list has the texts of its elements. A sink and
// an operation have the text "", and a view of them has its prefix. A kind has its name.
func (w *World) texts(x expr, f *frame) []Text {
	t, ok := x.info.Types[x.Expr]
	if ok && t.Value != nil {
		if t.Value.Kind() == constant.String {
			return []Text{{S: constant.StringVal(t.Value), Pos: x.Pos()}}
		}
		return []Text{{S: t.Value.ExactString(), Pos: x.Pos()}}
	}
	if ok && isRaiser(t.Type) {
		return []Text{{Pos: x.Pos()}}
	}
	if list := operand(x.Expr); list != nil && !isText(typeOf(x.info, list)) {
		return w.texts(expr{list, x.info}, f)
	}
	switch e := ast.Unparen(x.Expr).(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return unite(join(w.texts(expr{e.X, x.info}, f), w.texts(expr{e.Y, x.info}, f)))
		}
	case *ast.CompositeLit:
		return w.elements(e, x.info, f, false)
	case *ast.Ident, *ast.SelectorExpr:
		if v, ok := Object(e, x.info).(*types.Var); ok {
			return w.variable(v, x, f)
		}
	case *ast.CallExpr:
		return w.result(&call{CallExpr: e, info: x.info}, 0, f)
	}
	return []Text{{S: Hole, Pos: x.Pos()}}
}

// operand returns the variable of which an expression is an element, a part, the address or what it
// points to; nil for other expressions.
func operand(x ast.Expr) ast.Expr {
	switch x := ast.Unparen(x).(type) {
	case *ast.StarExpr:
		return x.X
	case *ast.UnaryExpr:
		return x.X
	case *ast.IndexExpr:
		return x.X
	case *ast.SliceExpr:
		return x.X
	}
	return nil
}

// isRaiser reports whether a type is *core.Sink or *core.Operation.
func isRaiser(t types.Type) bool { return slices.Contains([]string{"Sink", "Operation"}, coreType(t)) }

// elements returns the texts of the elements, or of the keys, of a literal.
func (w *World) elements(e *ast.CompositeLit, info *types.Info, f *frame, keys bool) []Text {
	var all []Text
	for _, el := range e.Elts {
		if kv, ok := el.(*ast.KeyValueExpr); ok && keys {
			el = kv.Key
		} else if ok {
			el = kv.Value
		}
		all = append(all, w.texts(expr{el, info}, f)...)
	}
	return unite(all)
}

// variable returns what a variable or a field may be.
func (w *World) variable(v *types.Var, x expr, f *frame) []Text {
	for _, r := range w.rolesOf(v) {
		switch r.Verb {
		case "raised":
			return []Text{{S: Known, Pos: x.Pos()}}
		case "is":
			return w.instance(r, nil, f, x.Pos())
		}
	}
	p, isParam := w.params[v]
	if isParam && f != nil && p.fn == f.fn {
		return unite(w.passed(f.call, p, f.up))
	}
	if all, ok := w.memo[v]; ok {
		return all
	}
	w.memo[v] = nil // while its values are found
	var all []Text
	for _, a := range w.assigned[v] {
		all = append(all, w.value(a)...)
	}
	if isParam {
		for _, c := range w.calls[p.fn] {
			all = append(all, w.passed(c, p, nil)...)
		}
	}
	if isParam && w.open(p) || !isParam && len(all) == 0 && (!w.own[v.Pkg()] || v.IsField()) {
		all = append(all, Text{S: Hole, Pos: v.Pos()})
	}
	all = unite(all)
	for i := range all {
		all[i].Loose = all[i].Loose || v.IsField() && len(all) > 1
	}
	w.memo[v] = all
	return all
}

// open reports whether a parameter may have values of which nothing is known.
func (w *World) open(p param) bool { return len(w.calls[p.fn]) == 0 || w.escapes[p.fn] }

// passed returns the texts that a call passes for a parameter.
func (w *World) passed(c *call, p param, f *frame) (all []Text) {
	for _, arg := range c.arguments(p) {
		for _, t := range w.texts(arg, f) {
			if !t.Via.IsValid() && p.n >= 0 {
				t.Via = arg.Pos()
			}
			all = append(all, t)
		}
	}
	return all
}

// value returns the texts of something that is assigned.
func (w *World) value(a value) []Text {
	switch a.part {
	case keys:
		if lit, info := w.literal(a.expr); lit != nil {
			if _, ok := info.TypeOf(lit).Underlying().(*types.Map); ok {
				return w.elements(lit, info, nil, true)
			}
		}
	case result:
		if c, ok := ast.Unparen(a.Expr).(*ast.CallExpr); ok {
			return w.result(&call{CallExpr: c, info: a.info}, a.n, nil)
		}
	case whole:
		return w.texts(a.expr, nil)
	}
	return []Text{{S: Hole, Pos: a.Pos()}}
}

// instance returns the texts of a template. For a function, c is the call.
func (w *World) instance(r roles.Role, c *call, f *frame, pos token.Pos) []Text {
	all := []Text{{}}
	for _, p := range r.Parts {
		var piece []Text
		switch {
		case !p.Slot:
			piece = []Text{{S: p.Text}}
		case p.Ref != "":
			piece = w.reference(p)
		case c == nil:
			piece = []Text{{S: Hole, Pos: pos}}
		default:
			for _, arg := range c.arguments(param{n: p.Index, variadic: c.variadic(p.Index)}) {
				piece = append(piece, w.texts(arg, f)...)
			}
		}
		if len(piece) == 0 {
			return nil
		}
		all = join(all, piece)
	}
	for i := range all {
		if !all[i].Pos.IsValid() {
			all[i].Pos = pos
		}
	}
	return unite(all)
}

// variadic reports whether the i-th parameter of the function takes many arguments.
func (c *call) variadic(i int) bool {
	s, ok := c.info.TypeOf(c.Fun).Underlying().(*types.Signature)
	return ok && s.Variadic() && i == s.Params().Len()-1
}
