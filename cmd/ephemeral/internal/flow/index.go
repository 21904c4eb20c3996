package flow

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
)

// index is what one walk over all packages finds.
type index struct {
	Units    []*Unit
	units    map[types.Object][]*Unit // of a type, also those of its methods
	assigned map[types.Object][]expr  // to variables, fields and results
	calls    map[any][]*call          // by *types.Func or *ast.FuncLit
	dynamic  []*call                  // of what is no name of a function
	escapes  map[any]bool             // functions that code outside the packages may call
	results  map[any]*types.Tuple
	params   map[types.Object]param
	names    map[types.Object]string   // what the library declares: "core Options.Name"
	objects  map[string][]types.Object // the same by name
	used     []*call
	memo     map[expr][]Text
	own      map[*types.Package]bool
	holder   map[ast.Expr]string // the variable that has the result of a call, also for its arguments
	dropped  []*call
	started  map[*ast.CallExpr]bool // by a go statement
	at       map[string][]directive // by file
}

// expr is an expression with the facts about its package. Of a call, it is the n-th result.
type expr struct {
	ast.Expr
	info *types.Info
	n    int
}

// of returns another expression of the package.
func (x expr) of(e ast.Expr) expr { return expr{Expr: e, info: x.info} }

// elements yields the values of a literal. A value of a struct has a field.
func (x expr) elements() iter.Seq2[*types.Var, expr] {
	return func(yield func(*types.Var, expr) bool) {
		lit, ok := x.Expr.(*ast.CompositeLit)
		if !ok {
			return
		}
		t := typeOf(x)
		if p, ok := t.Underlying().(*types.Pointer); ok { // in a list of pointers
			t = p.Elem()
		}
		s, _ := t.Underlying().(*types.Struct)
		for i, el := range lit.Elts {
			var field *types.Var
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				field, _ = Object(kv.Key, x.info).(*types.Var)
				el = kv.Value
			} else if s != nil {
				field = s.Field(i).Origin()
			}
			if !yield(field, x.of(el)) {
				return
			}
		}
	}
}

// unknown is an expression that may have any value.
func unknown(at token.Pos) expr { return expr{Expr: &ast.BadExpr{From: at}, info: &types.Info{}} }

// call is a call of a function; as an expression, it is one of the results. The library may also
// get a text when a field is set: then the callee is the field, and on is the literal that sets
// it. Without a callee, the first argument is compared with the second.
type call struct {
	expr
	*ast.CallExpr              // nil if nothing is called
	callee        types.Object // a function, a variable, a type or a builtin; nil for other expressions
	on            expr         // what stands before the name of the method or the function
	args          []expr       // without that
	variadic      int          // from this argument on, they are one parameter
	unit          *Unit
	fn            any // the function around it
}

// callOf returns the call that an expression is; nil if it is none.
func callOf(x expr) *call {
	e, ok := ast.Unparen(x.Expr).(*ast.CallExpr)
	if !ok {
		return nil
	}
	c := &call{expr: x, CallExpr: e, callee: Object(e.Fun, x.info), variadic: len(e.Args)}
	for _, arg := range e.Args {
		c.args = append(c.args, x.of(arg))
	}
	if s, ok := typeOf(x.of(e.Fun)).Underlying().(*types.Signature); ok && s.Variadic() && !e.Ellipsis.IsValid() {
		c.variadic = s.Params().Len() - 1
	}
	c.bind(x.of(e.Fun))
	return c
}

// bind takes the receiver from the name of a method; that of a method expression from the arguments.
func (c *call) bind(fun expr) {
	sel, ok := ast.Unparen(fun.Expr).(*ast.SelectorExpr)
	switch {
	case !ok:
	case fun.info.Types[sel.X].IsType() && len(c.args) > 0:
		c.on, c.args, c.variadic = c.args[0], c.args[1:], c.variadic-1
	default:
		c.on = fun.of(sel.X)
	}
}

// arguments returns what a call passes for the n-th parameter, or for the receiver.
func (c *call) arguments(n int) []expr {
	switch {
	case n == roles.Recv && c.on.Expr != nil:
		return []expr{c.on}
	case n < 0 || n >= len(c.args):
		return nil
	case n == c.variadic:
		return c.args[n:]
	}
	return c.args[n : n+1]
}

// param is a parameter of a function; n is roles.Recv for the receiver.
type param struct {
	fn any
	n  int
}

// Index finds the facts in the syntax of the packages. [Load] has called it.
func (w *World) Index() {
	w.index = index{
		units: map[types.Object][]*Unit{}, assigned: map[types.Object][]expr{}, calls: map[any][]*call{}, escapes: map[any]bool{},
		results: map[any]*types.Tuple{}, params: map[types.Object]param{}, names: map[types.Object]string{}, objects: map[string][]types.Object{},
		memo: map[expr][]Text{}, own: map[*types.Package]bool{}, holder: map[ast.Expr]string{}, started: map[*ast.CallExpr]bool{},
		at: map[string][]directive{},
	}
	var all []*types.Package
	for _, p := range w.Packages {
		w.own[p.Types] = true
		all = append(all, p.Types)
	}
	for _, p := range typeutil.Dependencies(all...) {
		w.library(p)
	}
	for _, p := range w.Packages {
		for _, f := range p.Syntax {
			first, test := len(w.Units), slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` })
			for _, d := range f.Decls {
				w.declaration(p, d, test)
			}
			w.comments(f, w.Units[first:])
		}
	}
	for fn, calls := range maps.Clone(w.calls) {
		if m, ok := fn.(*types.Func); ok {
			w.implemented(m, calls)
		}
	}
	for _, c := range w.dynamic {
		w.called(c)
	}
	for _, c := range w.used {
		w.facts(c)
	}
	for _, d := range w.dropped {
		w.drops(d)
	}
	w.declared()
}

// called writes down that a call may call the functions that its operand may be.
func (w *World) called(c *call) {
	all, from := w.trace(c.of(c.Fun), nil).functions()
	for i, fn := range all {
		c := *c
		c.bind(from[i].expr)
		w.calls[fn] = append(w.calls[fn], &c)
		if fn, ok := fn.(*types.Func); ok && !w.own[fn.Pkg()] {
			c.callee = fn
			w.used = append(w.used, &c)
		}
	}
}

// library writes down the names of a package, if it is one of the library.
func (w *World) library(p *types.Package) {
	dir := roles.Dir(p.Path())
	if dir == "" {
		return
	}
	note := func(name string, o types.Object) {
		w.names[o] = name
		w.objects[name] = append(w.objects[name], o)
	}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		name = dir + " " + name
		note(name, o)
		t, ok := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !isType || !ok {
			continue
		}
		for m := range t.Methods() {
			note(name+"."+m.Name(), m)
		}
		switch t := t.Underlying().(type) {
		case *types.Interface:
			for m := range t.ExplicitMethods() {
				note(name+"."+m.Name(), m)
			}
		case *types.Struct:
			for f := range t.Fields() {
				note(name+"."+f.Name(), f)
			}
		}
	}
}

// declaration makes the units of a declaration, and walks over them.
func (w *World) declaration(p *Package, d ast.Decl, test bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		fn, _ := p.TypesInfo.Defs[d.Name].(*types.Func)
		u := &Unit{Pkg: p, Object: fn, Node: d, Always: d.Recv == nil && d.Name.Name == "init",
			Test: test && !strings.HasPrefix(d.Name.Name, "Example")}
		if d.Recv != nil {
			t := named(fn.Signature().Recv().Type()).Obj()
			w.units[t] = append(w.units[t], u)
		}
		w.parameters(fn, fn.Signature())
		w.unit(u, fn)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				u := &Unit{Pkg: p, Node: spec, Test: test, Always: d.Tok == token.VAR}
				for _, id := range spec.Names {
					w.units[p.TypesInfo.Defs[id]] = []*Unit{u}
				}
				w.unit(u, nil)
			case *ast.TypeSpec:
				w.unit(&Unit{Pkg: p, Node: spec, Object: p.TypesInfo.Defs[spec.Name]}, nil)
			}
		}
	}
}

func (w *World) unit(u *Unit, fn any) {
	w.Units = append(w.Units, u)
	if u.Object != nil {
		w.units[u.Object] = append(w.units[u.Object], u)
	}
	(&walker{w, u, u.Pkg.TypesInfo, fn}).walk(u.Node)
}

// parameters writes down the parameters and the results of a function.
func (w *World) parameters(fn any, s *types.Signature) {
	w.results[fn] = s.Results()
	for i := range s.Params().Len() {
		w.params[s.Params().At(i)] = param{fn, i}
	}
	if s.Recv() != nil {
		w.params[s.Recv()] = param{fn, roles.Recv}
	}
}

// Object returns what an expression names: a variable, a field or a function, as it was declared.
func Object(x ast.Expr, info *types.Info) types.Object {
	var o types.Object
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		if o = info.Uses[x]; o == nil {
			o = info.Defs[x]
		}
	case *ast.SelectorExpr:
		o = info.Uses[x.Sel]
	case *ast.IndexExpr:
		return Object(x.X, info)
	case *ast.IndexListExpr:
		return Object(x.X, info)
	}
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// named returns the type that has the name, for T and *T.
func named(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	if n != nil {
		return n.Origin()
	}
	return nil
}

// key returns the directory and the name of a function, method, variable or field of the library,
// as in the table of roles.
func (w *World) key(o types.Object) (dir, name string) {
	dir, name, _ = strings.Cut(w.names[o], " ")
	return dir, name
}

// rolesOf returns the roles of a function, method, variable or field.
func (w *World) rolesOf(o types.Object) []roles.Role { return roles.Of(w.names[o]) }

// roleOf returns the first of them with one of these verbs; nil if there is none.
func (w *World) roleOf(o types.Object, verbs ...string) *roles.Role {
	for _, r := range w.rolesOf(o) {
		if slices.Contains(verbs, r.Verb) {
			return &r
		}
	}
	return nil
}
