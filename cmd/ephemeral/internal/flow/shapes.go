package flow

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// payload returns the type of the payload, if a call makes a kind. It is "" for any type.
func payload(u use) string {
	if u.call == nil {
		return ""
	}
	n, ok := types.Unalias(typeOf(u.call.info, u.call.CallExpr)).(*types.Named)
	if !ok || n.Obj().Name() != "Kind" || n.TypeArgs().Len() != 1 {
		return ""
	}
	p := types.Unalias(n.TypeArgs().At(0))
	if _, generic := p.(*types.TypeParam); generic || p.String() == "any" {
		return ""
	}
	return types.TypeString(p, func(p *types.Package) string { return p.Name() })
}

// shapes writes down the calls that make a coordinator with gates and without a sink, and the
// calls of its method Sink.
func (w *World) shapes(u use, o types.Object, f Fact) {
	if sel, ok := ast.Unparen(u.call.Fun).(*ast.SelectorExpr); ok && o.Name() == "Sink" && len(u.call.Args) == 0 && !isRaiser(typeOf(u.call.info, sel.X)) {
		f.Verb = "sink"
		made, known := w.made(expr{sel.X, u.call.info})
		for _, c := range made {
			f.Maker = c.Lparen
			u.unit.add(f)
		}
		if f.Maker = token.NoPos; !known {
			u.unit.add(f)
		}
		return
	}
	opts, ok := u.call.options()
	if !ok {
		return
	}
	if sinks, known := w.option(opts, "core Options.Sink"); !known || len(sinks) > 0 {
		return
	}
	f.Verb, f.Maker, f.On = "alone", u.call.Lparen, w.name(opts, w.holder[u.call.CallExpr])
	for _, f.API = range []string{"CancelOn", "DeferOn"} {
		patterns, _ := w.option(opts, "core Options."+f.API)
		f.Texts = nil
		for _, x := range patterns {
			f.Texts = append(f.Texts, w.texts(x, nil)...)
		}
		if len(f.Texts) > 0 {
			u.unit.add(f)
		}
	}
}

// base returns the coordinator of which an expression is a view, such as c for
// c.Class("a").Lane("b").
func (w *World) base(x expr, isView func(fn *types.Func) bool) expr {
	for {
		c, ok := ast.Unparen(x.Expr).(*ast.CallExpr)
		if !ok {
			return x
		}
		sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
		fn, _ := Object(c.Fun, x.info).(*types.Func)
		if !ok || fn == nil || !isView(fn) {
			return x
		}
		x.Expr = sel.X
	}
}

// places returns the names of the lanes or classes of the coordinators of which a call makes a
// view, if all places are known in which they may be made; and a name for the coordinator.
func (w *World) places(u use, kind string) (all []Text, known bool, on string) {
	sel, ok := ast.Unparen(u.call.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil, false, ""
	}
	x := w.base(expr{sel.X, u.call.info}, func(fn *types.Func) bool { return slices.ContainsFunc(RolesOf(fn), isView) })
	made, known := w.made(x)
	on = types.ExprString(x.Expr)
	field := map[string]string{"lane": "core Options.Lanes", "class": "core Options.Classes"}[kind]
	for _, c := range made {
		opts, _ := c.options()
		if len(made) == 1 {
			on = w.name(opts, on)
		}
		lists, ok := w.option(opts, field)
		known = known && ok
		for _, list := range lists {
			names, ok := w.names(list)
			known = known && ok
			all = append(all, names...)
		}
	}
	return all, known, on
}

// names returns the names of lanes or classes in a list, or in the text of ParseLanes.
func (w *World) names(x expr) (all []Text, known bool) {
	t := w.trace(x, 0)
	known = !t.partly && !slices.ContainsFunc(t.through, func(v types.Object) bool { return len(w.parts[v]) > 0 })
	for _, from := range t.from {
		switch e := from.Expr.(type) {
		case *ast.CallExpr:
			dir, name := Key(Object(e.Fun, from.info))
			known = known && name == "ParseLanes" && dir != ""
			if known {
				for _, t := range w.texts(expr{e.Args[0], from.info}, nil) {
					known = known && t.Exact()
					for name := range strings.SplitSeq(t.S, ",") {
						name, _, _ = strings.Cut(name, ":")
						all = append(all, Text{S: strings.TrimSpace(name), Pos: t.Pos})
					}
				}
			}
		case *ast.CompositeLit:
			for _, el := range e.Elts {
				inner, ok := []Text(nil), true
				if kv, isField := el.(*ast.KeyValueExpr); !isField {
					inner, ok = w.names(expr{el, from.info})
				} else if strings.HasSuffix(w.fields[Object(kv.Key, from.info)], ".Name") {
					inner = w.texts(expr{kv.Value, from.info}, nil)
				}
				known = known && ok && !slices.ContainsFunc(inner, func(t Text) bool { return !t.Exact() })
				all = append(all, inner...)
			}
		default:
			known = false
		}
	}
	return all, known
}
