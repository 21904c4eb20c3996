package flow

import (
	"go/ast"
	"go/types"
	"slices"
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

// makers are the functions that make a sink of their own, if the options have none.
var makers = map[string][]string{
	"core":                  {"NewCoordinator", "NewKeyedCoordinator", "NewResultCoordinator", "NewKeyedResultCoordinator"},
	"atoms/signalaware":     {"New"},
	"atoms/fixedwork":       {"New"},
	"atoms/keyedsequential": {"New"},
	"complete":              {"NewCoordinator", "NewKeyedCoordinator", "NewResultCoordinator", "NewKeyedResultCoordinator", "NewGate", "NewPool", "NewSequencer"},
}

// shapes writes down the calls that make a coordinator with gates and without a sink, and the
// calls of its method Sink.
func (w *World) shapes(u use, o types.Object, f Fact) {
	dir, name := Key(o)
	if sel, ok := ast.Unparen(u.call.Fun).(*ast.SelectorExpr); ok && o.Name() == "Sink" && len(u.call.Args) == 0 && !isRaiser(typeOf(u.call.info, sel.X)) {
		f.Verb = "sink"
		if made, ok := w.call(expr{sel.X, u.call.info}); ok {
			f.Maker = made.Pos()
		}
		u.unit.Facts.Facts = append(u.unit.Facts.Facts, f)
		return
	}
	if !slices.Contains(makers[dir], name) {
		return
	}
	lit, ok := ast.Unparen(u.call.Args[len(u.call.Args)-1]).(*ast.CompositeLit)
	if !ok {
		return
	}
	f.Verb, f.Maker = "alone", u.call.Pos()
	for _, x := range lit.Elts {
		kv, ok := x.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		switch w.fields[Object(kv.Key, u.call.info)] {
		case "core Options.Sink":
			return
		case "core Options.CancelOn", "core Options.DeferOn":
			f.Texts = append(f.Texts, w.texts(expr{kv.Value, u.call.info}, nil)...)
		}
	}
	if len(f.Texts) > 0 {
		u.unit.Facts.Facts = append(u.unit.Facts.Facts, f)
	}
}
