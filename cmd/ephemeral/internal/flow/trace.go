package flow

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// trace follows an expression to what makes its values.
type trace struct {
	w       *World
	from    []origin
	fields  []expr // whose fields are on the way
	several bool   // on the way is a parameter or a result, which may stand for several values at once
	pointer bool   // on the way is a pointer, through which other code may set fields
	lists   bool   // a list is the origin, and not its elements
	seen    map[ast.Node]bool
	vars    map[*types.Var]bool
	via     token.Pos // the argument that is followed
}

// origin is what makes a value: a constant, a sum, a literal, a function or a call. If nothing is
// known of a value, it is an *ast.BadExpr.
type origin struct {
	expr
	frame *frame
	via   token.Pos // the argument with which a helper gets it
	loose bool      // a field has it, and other values as well
}

// frame is a call of a function: its parameters have the values of this call, and not those
// of all calls.
type frame struct {
	fn    any
	call  *call
	up    *frame // of the caller
	depth int
}

// trace returns where the values of an expression come from. The values of a list or a map count
// as its own.
func (w *World) trace(x expr, f *frame) *trace {
	t := &trace{w: w, seen: map[ast.Node]bool{}, vars: map[*types.Var]bool{}}
	t.follow(x, f)
	return t
}

func (t *trace) follow(x expr, f *frame) {
	if x.Expr == nil {
		return
	}
	known := x.info.Types[x.Expr]
	leaf := known.Value != nil || isRaiser(known.Type)
	if list := operand(x.Expr); !leaf && list != nil && !isText(typeOf(x.of(list))) {
		t.follow(x.of(list), f)
		return
	}
	switch e := ast.Unparen(x.Expr).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		v, isVar := Object(e, x.info).(*types.Var)
		switch sel, _ := e.(*ast.SelectorExpr); {
		case known.IsNil():
			return
		case !isVar || leaf || t.w.roleOf(v, "raised", "is") != nil:
		case sel != nil && v.IsField() && t.w.names[v] != "":
			t.field(sel, x.info, t.w.names[v])
			return
		default:
			if sel != nil && v.IsField() {
				t.fields = append(t.fields, x.of(sel.X))
			}
			t.variable(v, f)
			return
		}
	case *ast.CompositeLit:
		if isList(typeOf(x)) && !t.lists {
			for _, el := range x.elements() {
				t.follow(el, f)
			}
			return
		}
	case *ast.CallExpr:
		if !leaf && t.call(callOf(x), f) {
			return
		}
	}
	t.from = append(t.from, origin{x, f, t.via, false})
}

// unknown notes that there are other values.
func (t *trace) unknown(at token.Pos) { t.from = append(t.from, origin{expr: unknown(at)}) }

// functions of which the result has the values of the arguments.
var alike = []string{"append", "cmp.Or", "slices.Clone", "slices.Concat", "slices.Values", "core.Must", "complete.Must"}

// call follows a call to what is returned, and reports whether it could.
func (t *trace) call(c *call, f *frame) bool {
	switch fun := c.info.Types[c.Fun]; {
	case fun.IsType() && isText(fun.Type) && !isText(typeOf(c.args[0])), t.w.roleOf(c.callee, "is") != nil:
		return false
	case fun.IsType(), slices.Contains(alike, fullName(c.callee)):
		for _, arg := range c.args {
			t.follow(arg, f)
		}
	case t.w.isView(c.callee):
		t.follow(c.on, f)
	default:
		return t.results(c, f)
	}
	return true
}

// results follows a call of functions that are read from source, once.
func (t *trace) results(c *call, f *frame) (found bool) {
	depth := 0
	if f != nil {
		depth = f.depth + 1
	}
	if t.seen[c.CallExpr] || depth > 6 {
		return false
	}
	t.seen[c.CallExpr] = true
	fun := &trace{w: t.w, seen: t.seen, vars: map[*types.Var]bool{}}
	fun.follow(c.of(c.Fun), f)
	all, _ := fun.functions()
	for _, fn := range all {
		results := t.w.results[fn]
		if c.n >= results.Len() {
			continue
		}
		t.several = true
		for _, r := range t.w.assigned[results.At(c.n)] {
			found = true
			t.follow(r, &frame{fn, c, f, depth})
		}
	}
	return found
}

// field follows a field of options, such as opts.Lanes, or config.Lanes if the options are embedded.
func (t *trace) field(x *ast.SelectorExpr, info *types.Info, name string) {
	if t.seen[x] {
		return
	}
	t.seen[x] = true
	all, known := t.w.option(expr{Expr: x.X, info: info}, name)
	if !known {
		t.unknown(x.Pos())
	}
	for _, x := range all {
		t.follow(x, nil)
	}
}

func (t *trace) variable(v *types.Var, f *frame) {
	p, isParam := t.w.params[v]
	t.several = t.several || isParam
	if _, pointer := v.Type().Underlying().(*types.Pointer); pointer {
		t.pointer = true
	}
	if isParam && f != nil && p.fn == f.fn {
		t.passed(f.call, p, f.up)
		return
	} else if t.vars[v] {
		return
	}
	t.vars[v] = true
	first, values := len(t.from), t.w.assigned[v]
	for _, x := range values {
		t.follow(x, nil)
	}
	for _, c := range t.w.calls[p.fn] {
		t.passed(c, p, nil)
	}
	if isParam && t.w.open(p) || !isParam && len(values) == 0 && (v.IsField() || !t.w.own[v.Pkg()]) {
		t.unknown(v.Pos())
	}
	for i := first; v.IsField() && i < len(t.from); i++ {
		t.from[i].loose = t.from[i].loose || len(t.from) > first+1
	}
}

// open reports whether a parameter may have values of which nothing is known.
func (w *World) open(p param) bool { return len(w.calls[p.fn]) == 0 || w.escapes[p.fn] }

// passed follows what a call passes for a parameter.
func (t *trace) passed(c *call, p param, f *frame) {
	before := t.via
	for _, arg := range c.arguments(p.n) {
		if p.n >= 0 {
			t.via = arg.Pos()
		}
		t.follow(arg, f)
	}
	t.via = before
}

// functions returns the functions that an expression may be: each is a *types.Func or an *ast.FuncLit.
func (w *World) functions(x expr) []any {
	all, _ := w.trace(x, nil).functions()
	return all
}

func (t *trace) functions() (all []any, from []origin) {
	for _, o := range t.from {
		if lit, ok := o.Expr.(*ast.FuncLit); ok {
			all, from = append(all, lit), append(from, o)
		} else if fn, ok := Object(o.Expr, o.info).(*types.Func); ok {
			all, from = append(all, fn), append(from, o)
		}
	}
	return all, from
}

// list returns the literal of a list or a map that alone makes the value of an expression.
func (w *World) list(x expr, f *frame) (list origin, ok bool) {
	t := trace{w: w, lists: true, seen: map[ast.Node]bool{}, vars: map[*types.Var]bool{}}
	if t.follow(x, f); len(t.from) == 1 {
		_, ok = t.from[0].Expr.(*ast.CompositeLit)
		return t.from[0], ok
	}
	return list, false
}

// isList reports whether a literal of the type has elements, also as a map.
func isList(t types.Type) bool {
	_, hasElem := t.Underlying().(interface{ Elem() types.Type })
	_, isPointer := t.Underlying().(*types.Pointer)
	return hasElem && !isPointer
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
