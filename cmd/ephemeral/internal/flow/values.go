package flow

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// trace follows an expression to what makes its values: calls, literals and functions.
type trace struct {
	w       *World
	from    []expr
	through []types.Object    // variables, fields and functions
	fields  []expr            // selectors of fields
	read    map[ast.Expr]bool // fields of options
	partly  bool              // there may be other values
}

// trace returns where the values of an expression come from: of a call, those of its n-th result.
// The values of a list or a map count as its own.
func (w *World) trace(x expr, n int) *trace {
	t := &trace{w: w, read: map[ast.Expr]bool{}}
	t.follow(x, n)
	return t
}

func (t *trace) follow(x expr, n int) {
	switch e := ast.Unparen(x.Expr).(type) {
	case *ast.UnaryExpr:
		_, lit := ast.Unparen(e.X).(*ast.CompositeLit)
		t.partly = t.partly || e.Op != token.AND || !lit
		t.follow(expr{e.X, x.info}, 0)
	case *ast.StarExpr, *ast.SliceExpr:
		t.follow(expr{operand(e), x.info}, 0)
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr:
		switch o := Object(e, x.info).(type) {
		case *types.Nil:
		case *types.Var:
			sel, _ := e.(*ast.SelectorExpr)
			if sel != nil && t.w.fields[o] != "" {
				t.field(sel, x.info, t.w.fields[o])
				return
			} else if o.IsField() && sel != nil {
				t.fields = append(t.fields, expr{sel.X, x.info})
			}
			t.variable(o)
		default:
			t.from = append(t.from, expr{e, x.info})
		}
	case *ast.CallExpr:
		o := Object(e.Fun, x.info)
		fn, _ := o.(*types.Func)
		switch c := (&call{CallExpr: e, info: x.info}); {
		case isMust(o):
			t.follow(expr{e.Args[0], x.info}, n)
		case t.w.isView(o):
			t.follow(c.receiver(), 0)
		case fullName(o) == "append":
			for _, arg := range e.Args {
				t.follow(expr{arg, x.info}, 0)
			}
		case fn == nil || !t.w.own[fn.Pkg()]:
			t.from = append(t.from, expr{e, x.info})
		case !slices.Contains(t.through, o):
			t.through = append(t.through, o)
			found := false
			for _, r := range t.w.returns[fn] {
				t.partly = t.partly || r.part != whole
				if r.n == n && r.part == whole {
					found = true
					t.follow(r.expr, n)
				}
			}
			t.partly = t.partly || !found
		}
	default:
		t.from = append(t.from, expr{e, x.info})
	}
}

// field follows a field of options, such as opts.Lanes, or config.Lanes if the options are embedded.
func (t *trace) field(x *ast.SelectorExpr, info *types.Info, name string) {
	if t.read[x] {
		return
	}
	t.read[x] = true
	opts := t.w.trace(expr{x.X, info}, 0)
	for _, v := range embedded(x, info) {
		opts.variable(v)
	}
	all, known := opts.option(name)
	t.partly = t.partly || !known
	for _, x := range all {
		t.follow(x, 0)
	}
}

func (t *trace) variable(v *types.Var) {
	if slices.Contains(t.through, types.Object(v)) {
		return
	}
	t.through = append(t.through, v)
	p, isParam := t.w.params[v]
	from := t.w.assigned[v]
	t.partly = t.partly || t.w.shared[v] || isParam && t.w.open(p) || v.IsField() && len(from) == 0
	for _, a := range from {
		switch a.part {
		case whole:
			t.follow(a.expr, 0)
		case result:
			t.follow(a.expr, a.n)
		default:
			t.partly = true
		}
	}
	if isParam {
		for _, c := range t.w.calls[p.fn] {
			for _, arg := range c.arguments(p) {
				t.follow(arg, 0)
			}
		}
	}
}

// functions returns the functions that an expression may be.
func (w *World) functions(x expr) (all []any) {
	for _, from := range w.trace(x, 0).from {
		if lit, ok := from.Expr.(*ast.FuncLit); ok {
			all = append(all, lit)
		} else if fn, ok := Object(from.Expr, from.info).(*types.Func); ok {
			all = append(all, fn)
		}
	}
	return all
}

// named returns those functions that have a name.
func (w *World) named(x expr) (all []*types.Func) {
	for _, fn := range w.functions(x) {
		if fn, ok := fn.(*types.Func); ok {
			all = append(all, fn)
		}
	}
	return all
}

// literal returns the composite literal that alone makes the value of an expression.
func (w *World) literal(x expr) (lit *ast.CompositeLit, info *types.Info) {
	if t := w.trace(x, 0); !t.partly && len(t.from) == 1 {
		lit, _ = t.from[0].Expr.(*ast.CompositeLit)
		return lit, t.from[0].info
	}
	return nil, nil
}

// option returns what a field of options may be, if that is known. The field is one of the
// library, like "core Options.Sink"; "Options.Name" is one of any options. Nothing means that it is not set.
func (w *World) option(opts expr, field string) (all []expr, known bool) {
	return w.trace(opts, 0).option(field)
}

func (t *trace) option(field string) (all []expr, known bool) {
	w := t.w
	known = !t.partly
	take := func(o types.Object, x expr) {
		if strings.HasSuffix(w.fields[o], field) {
			all = append(all, x)
		} else if v, ok := o.(*types.Var); ok && v.Embedded() { // options in a struct of the program
			inner, ok := w.option(x, field)
			all, known = append(all, inner...), known && ok
		}
	}
	for _, v := range t.through {
		_, pointer := v.Type().Underlying().(*types.Pointer)
		known = known && !pointer
		for _, p := range w.parts[v] {
			take(p.field, p.value)
		}
	}
	for _, from := range t.from {
		lit, ok := from.Expr.(*ast.CompositeLit)
		if known = known && ok; !known {
			break
		}
		for _, el := range lit.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				take(Object(kv.Key, from.info), expr{kv.Value, from.info})
			} else {
				known = false
			}
		}
	}
	return all, known
}

// makers are the functions that make a sink of their own, if the options have none.
var makers = map[string][]string{
	"core":                  {"NewCoordinator", "NewKeyedCoordinator", "NewResultCoordinator", "NewKeyedResultCoordinator"},
	"atoms/signalaware":     {"New"},
	"atoms/fixedwork":       {"New"},
	"atoms/keyedsequential": {"New"},
	"complete":              {"NewCoordinator", "NewKeyedCoordinator", "NewResultCoordinator", "NewKeyedResultCoordinator", "NewGate", "NewPool", "NewSequencer"},
}

// options returns the argument with the options of a coordinator, if that is what the call makes.
func (w *World) options(c call) (opts expr, ok bool) {
	dir, name := w.key(Object(c.Fun, c.info))
	if len(c.Args) == 0 || !slices.Contains(makers[dir], name) {
		return expr{}, false
	}
	return expr{c.Args[len(c.Args)-1], c.info}, true
}

// made returns the calls that make the coordinators that an expression may be, if all are known.
func (w *World) made(x expr) (all []call, known bool) {
	t := w.trace(x, 0)
	for _, from := range t.from {
		e, _ := from.Expr.(*ast.CallExpr)
		c := call{CallExpr: e, info: from.info}
		if e == nil {
			return nil, false
		} else if _, ok := w.options(c); !ok {
			return nil, false
		}
		all = append(all, c)
	}
	return all, !t.partly && len(all) > 0
}

// name is the name of a coordinator for people: its Options.Name if that is constant, or the
// variable that has it.
func (w *World) name(opts expr, or string) string {
	if names, ok := w.option(opts, "Options.Name"); ok && len(names) == 1 {
		if texts := w.texts(names[0], nil); len(texts) == 1 && texts[0].Exact() {
			return strconv.Quote(texts[0].S)
		}
	}
	return or
}
