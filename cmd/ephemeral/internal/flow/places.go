package flow

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// places returns the names of the lanes or classes of the coordinator whose view a call makes.
// It knows them if the coordinator is made in one place, with options and lanes that are
// written there.
func (w *World) places(u use, kind string) (names []Text, known bool) {
	x := u.call.Fun
	for { // c.Class("a").Lane("b") is a view of c
		sel, ok := ast.Unparen(x).(*ast.SelectorExpr)
		if !ok {
			return nil, false
		}
		x = sel.X
		inner, ok := ast.Unparen(x).(*ast.CallExpr)
		if !ok {
			break
		}
		if !slices.ContainsFunc(RolesOf(Object(inner.Fun, u.call.info)), isView) {
			return nil, false
		}
		x = inner.Fun
	}
	made, ok := w.call(expr{x, u.call.info})
	if !ok || len(made.Args) == 0 {
		return nil, false
	}
	if dir, name := Key(Object(made.Fun, made.info)); !slices.Contains(makers[dir], name) {
		return nil, false
	}
	opts, ok := w.literal(expr{made.Args[len(made.Args)-1], made.info})
	if !ok {
		return nil, false
	}
	field := map[string]string{"lane": "core Options.Lanes", "class": "core Options.Classes"}[kind]
	for _, el := range opts.Expr.(*ast.CompositeLit).Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			return nil, false
		}
		if w.fields[Object(kv.Key, opts.info)] == field {
			return w.names(expr{kv.Value, opts.info})
		}
	}
	return nil, true
}

// only follows a variable that is assigned once to its value.
func (w *World) only(x expr) (value, bool) {
	for range 8 {
		o := Object(x.Expr, x.info)
		if o == nil {
			return value{expr: x}, true
		}
		if _, isParam := w.params[o]; isParam || len(w.assigned[o]) != 1 || w.changed[o] {
			return value{}, false
		}
		v := w.assigned[o][0]
		if v.part != whole {
			return v, true
		}
		x = v.expr
	}
	return value{}, false
}

// call returns the call that makes the value of an expression, without Must around it.
func (w *World) call(x expr) (*call, bool) {
	v, ok := w.only(x)
	if !ok || v.part == keys || v.part == unknown || v.n > 0 {
		return nil, false
	}
	c, ok := ast.Unparen(v.Expr).(*ast.CallExpr)
	if !ok {
		return nil, false
	}
	if _, name := Key(Object(c.Fun, v.info)); name == "Must" {
		return w.call(expr{c.Args[0], v.info})
	}
	return &call{CallExpr: c, info: v.info}, true
}

// literal returns the composite literal that an expression stands for.
func (w *World) literal(x expr) (expr, bool) {
	v, ok := w.only(x)
	if !ok || v.part != whole {
		return expr{}, false
	}
	lit, ok := ast.Unparen(v.Expr).(*ast.CompositeLit)
	return expr{lit, v.info}, ok
}

// names returns the names of lanes or classes in a list, or in the text of ParseLanes.
func (w *World) names(x expr) (all []Text, known bool) {
	if c, ok := w.call(x); ok {
		if dir, name := Key(Object(c.Fun, c.info)); name != "ParseLanes" || dir == "" {
			return nil, false
		}
		for _, t := range w.texts(expr{c.Args[0], c.info}, nil) {
			if !t.Exact() {
				return nil, false
			}
			for name := range strings.SplitSeq(t.S, ",") {
				name, _, _ = strings.Cut(name, ":")
				all = append(all, Text{S: strings.TrimSpace(name), Pos: t.Pos})
			}
		}
		return all, true
	}
	list, ok := w.literal(x)
	if !ok {
		return nil, false
	}
	for _, el := range list.Expr.(*ast.CompositeLit).Elts {
		one, ok := w.literal(expr{el, list.info})
		if !ok {
			return nil, false
		}
		for _, f := range one.Expr.(*ast.CompositeLit).Elts {
			kv, ok := f.(*ast.KeyValueExpr)
			if !ok {
				return nil, false
			}
			if name := w.fields[Object(kv.Key, one.info)]; strings.HasSuffix(name, ".Name") {
				texts := w.texts(expr{kv.Value, one.info}, nil)
				if slices.ContainsFunc(texts, func(t Text) bool { return !t.Exact() }) {
					return nil, false
				}
				all = append(all, texts...)
			}
		}
	}
	return all, true
}

// change notes that a part of a variable is set, such as opts.Lanes.
func (k *walker) change(to ast.Expr) {
	for {
		switch x := ast.Unparen(to).(type) {
		case *ast.SelectorExpr:
			to = x.X
		case *ast.IndexExpr:
			to = x.X
		case *ast.StarExpr:
			to = x.X
		default:
			if v, ok := Object(to, k.info).(*types.Var); ok {
				k.w.changed[v] = true
			}
			return
		}
	}
}
