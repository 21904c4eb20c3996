package flow

import (
	"go/ast"
	"go/types"
	"slices"
)

// payload returns the type of the payload, if a call makes a kind. It is "" for any type.
func payload(c *call) string { return payloadOf(typeOf(c.expr), "Kind") }

// payloadOf is the same for a type with one of these names.
func payloadOf(kind types.Type, names ...string) string {
	n, ok := types.Unalias(kind).(*types.Named)
	if !ok || !slices.Contains(names, n.Obj().Name()) || n.TypeArgs().Len() != 1 {
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
func (w *World) shapes(c *call, f Fact) {
	if f.API == "Sink" && c.on.Expr != nil && len(c.args) == 0 && !isRaiser(typeOf(c.on)) {
		f.Verb = "sink"
		made := w.made(c.on)
		for _, m := range made {
			f.Maker = m.Lparen
			c.unit.add(f)
		}
		if len(made) == 0 {
			c.unit.add(f)
		}
		return
	}
	opts := w.options(c)
	if sinks, known := w.option(opts, "core Options.Sink"); opts.Expr == nil || !known || len(sinks) > 0 {
		return
	}
	f.Verb, f.Maker, f.On = "alone", c.Lparen, w.name(opts, w.holder[c.CallExpr])
	for _, f.API = range []string{"CancelOn", "DeferOn"} {
		patterns, _ := w.option(opts, "core Options."+f.API)
		f.Texts = nil
		for _, x := range patterns {
			f.Texts = append(f.Texts, w.texts(x, nil)...)
		}
		if len(f.Texts) > 0 {
			c.unit.add(f)
		}
	}
}

// places returns the names of the lanes or classes of the coordinators of which a call makes a
// view, if all places are known in which they may be made; and a name for the coordinator.
func (w *World) places(c *call, kind string) (all []Text, known bool, on string) {
	x := c.on
	made := w.made(x)
	known = len(made) > 0
	for c := callOf(x); c != nil && w.isView(c.callee); c = callOf(x) { // of c.Class("a").Lane("b"), c
		x = c.on
	}
	on = types.ExprString(x.Expr)
	for _, c := range made {
		opts := w.options(c)
		if len(made) == 1 {
			on = w.name(opts, on)
		}
		lists, ok := w.option(opts, map[string]string{"lane": "core Options.Lanes", "class": "core Options.Classes"}[kind])
		known = known && ok
		for _, list := range lists {
			names, ok := w.defined(list, "defines "+kind)
			known = known && ok
			all = append(all, names...)
		}
	}
	return Fact{Verb: kind, Texts: all}.Parts(), known, on
}

// defined returns the names that a list of lanes or classes defines, or the text of ParseLanes.
func (w *World) defined(x expr, verb string) (all []Text, known bool) {
	known = true
	defines := func(o types.Object) bool { return w.roleOf(o, verb) != nil }
	for _, from := range w.trace(x, nil).from {
		_, isLit := from.Expr.(*ast.CompositeLit)
		if c := callOf(from.expr); c != nil && defines(c.callee) {
			all = append(all, w.texts(c.args[0], nil)...)
		} else if !isLit {
			known = false
		}
		for field, el := range from.elements() {
			if defines(field) {
				all = append(all, w.texts(el, nil)...)
			}
		}
	}
	return all, known && !slices.ContainsFunc(all, func(t Text) bool { return !t.Exact() })
}
