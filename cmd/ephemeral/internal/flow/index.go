package flow

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
)

// index is what one walk over all packages finds.
type index struct {
	Units    []*Unit
	units    map[types.Object]*Unit
	methods  map[types.Object][]*Unit // by type
	assigned map[types.Object][]expr  // to variables, fields and results
	calls    map[any][]*call          // by *types.Func or *ast.FuncLit
	dynamic  map[types.Object][]*call // by the variable with the function
	escapes  map[any]bool             // functions that code outside the packages may call
	results  map[any]*types.Tuple
	params   map[types.Object]param
	fields   map[types.Object]string // *types.Var: fields of the library: "core Options.Name"
	used     []use
	memo     map[expr][]Text
	own      map[*types.Package]bool
	holder   map[*ast.CallExpr]string            // the variable that has the result, for people
	labels   map[*ast.CompositeLit]*ast.CallExpr // the call that gets the literal
	dropped  []drop
	linked   map[string]Fact        // by path
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

// unknown is an expression that may have any value.
func unknown(at token.Pos) expr { return expr{Expr: &ast.BadExpr{From: at}, info: &types.Info{}} }

// call is a call of a function that is read from source.
type call struct {
	*ast.CallExpr
	info *types.Info
	unit *Unit
	fn   any  // the function around it
	on   expr // the receiver, if a variable has the method
}

// of returns an expression of the package of the call.
func (c *call) of(e ast.Expr) expr { return expr{Expr: e, info: c.info} }

// drop is a result of a call that is not kept; n is -1 for all results.
type drop struct {
	*call
	n int
}

// param is a parameter of a function; n is roles.Recv for the receiver.
type param struct {
	fn       any
	n        int
	variadic bool
}

// use is a place where the library may get a text: a call, a field that is set, or a comparison.
type use struct {
	unit   *Unit
	fn     any               // the function around it
	object types.Object      // that is called, or the field; nil for a comparison
	call   *call             // nil for a field
	value  expr              // of the field, or the call
	of     *ast.CompositeLit // that sets the field
	name   expr              // that is compared with the value
}

// Index finds the facts in the syntax of the packages. [Load] has called it.
func (w *World) Index() {
	w.index = index{
		units: map[types.Object]*Unit{}, methods: map[types.Object][]*Unit{}, assigned: map[types.Object][]expr{},
		calls: map[any][]*call{}, dynamic: map[types.Object][]*call{}, escapes: map[any]bool{}, results: map[any]*types.Tuple{},
		params: map[types.Object]param{}, fields: map[types.Object]string{}, memo: map[expr][]Text{}, own: map[*types.Package]bool{},
		holder: map[*ast.CallExpr]string{}, labels: map[*ast.CompositeLit]*ast.CallExpr{}, linked: map[string]Fact{},
		started: map[*ast.CallExpr]bool{}, at: map[string][]directive{},
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
			w.comments(f)
			for _, d := range f.Decls {
				test := slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` })
				w.declaration(p, d, test)
			}
		}
	}
	for fn, calls := range maps.Clone(w.calls) {
		if m, ok := fn.(*types.Func); ok {
			for _, f := range w.implementations(m) {
				w.calls[f] = append(w.calls[f], calls...)
			}
		}
	}
	for _, calls := range w.dynamic {
		for _, from := range w.trace(calls[0].of(calls[0].Fun), nil).from {
			for _, c := range calls {
				w.called(from, *c)
			}
		}
	}
	for _, u := range w.used {
		w.facts(u)
	}
	for _, d := range w.dropped {
		w.drops(d)
	}
	w.declared()
}

// called writes down that a call of a variable may call a function.
func (w *World) called(from origin, c call) {
	switch fn := Object(from.Expr, from.info).(type) {
	case nil:
		w.calls[from.Expr] = append(w.calls[from.Expr], &c) // if it is a function literal
	case *types.Func:
		c.on = (&call{CallExpr: &ast.CallExpr{Fun: from.Expr}, info: from.info}).receiver()
		w.calls[fn] = append(w.calls[fn], &c)
		if !w.own[fn.Pkg()] {
			w.used = append(w.used, use{unit: c.unit, fn: c.fn, object: fn, call: &c, value: c.of(c.CallExpr)})
		}
	}
}

// library writes down the fields of a package, if it is one of the library.
func (w *World) library(p *types.Package) {
	dir := roles.Dir(p.Path())
	if dir == "" {
		return
	}
	for _, name := range p.Scope().Names() {
		o, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || o.IsAlias() {
			continue
		}
		if s, ok := o.Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				w.fields[f] = dir + " " + name + "." + f.Name()
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
			if t := named(fn.Signature().Recv().Type()); t != nil {
				w.methods[t.Obj()] = append(w.methods[t.Obj()], u)
			}
		}
		w.parameters(fn, fn.Signature())
		w.unit(u, fn)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				u := &Unit{Pkg: p, Node: spec, Test: test, Always: d.Tok == token.VAR}
				for _, id := range spec.Names {
					w.units[p.TypesInfo.Defs[id]] = u
				}
				w.unit(u, nil)
			case *ast.TypeSpec:
				w.unit(&Unit{Pkg: p, Node: spec, Object: p.TypesInfo.Defs[spec.Name]}, nil)
				w.tagged(spec, p.TypesInfo)
			}
		}
	}
}

func (w *World) unit(u *Unit, fn any) {
	w.Units = append(w.Units, u)
	if u.Object != nil {
		w.units[u.Object] = u
	}
	(&walker{w, u, u.Pkg.TypesInfo, fn}).walk(u.Node)
}

// parameters writes down the parameters and the results of a function.
func (w *World) parameters(fn any, s *types.Signature) {
	w.results[fn] = s.Results()
	for i := range s.Params().Len() {
		w.params[s.Params().At(i)] = param{fn, i, s.Variadic() && i == s.Params().Len()-1}
	}
	if s.Recv() != nil {
		w.params[s.Recv()] = param{fn: fn, n: roles.Recv}
	}
}

// arguments returns what a call passes for a parameter.
func (c *call) arguments(p param) (all []expr) {
	on, args := c.receiver(), c.Args
	if len(args) > 0 && on.Expr == args[0] { // of a method expression
		args = args[1:]
	}
	switch {
	case p.n == roles.Recv && on.Expr != nil:
		all = []expr{on}
	case p.n == roles.Recv:
	case p.variadic && !c.Ellipsis.IsValid():
		for i := p.n; i < len(args); i++ {
			all = append(all, c.of(args[i]))
		}
	case p.n < len(args):
		all = []expr{c.of(args[p.n])}
	}
	return all
}

// receiver returns what stands before the name of a method, or before that of a function.
func (c *call) receiver() expr {
	sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
	switch {
	case !ok || c.on.Expr != nil:
		return c.on
	case c.info.Types[sel.X].IsType() && len(c.Args) > 0:
		return c.of(c.Args[0])
	}
	return c.of(sel.X)
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
	if o == nil || o.Pkg() == nil {
		return "", ""
	} else if field, ok := w.fields[o]; ok {
		dir, name, _ = strings.Cut(field, " ")
		return dir, name
	}
	dir, name = roles.Dir(o.Pkg().Path()), o.Name()
	if fn, ok := o.(*types.Func); ok && dir != "" {
		if recv := fn.Signature().Recv(); recv != nil {
			if t := named(recv.Type()); t != nil {
				name = t.Obj().Name() + "." + name
			}
		}
	}
	return dir, name
}

// rolesOf returns the roles of a function, method, variable or field.
func (w *World) rolesOf(o types.Object) []roles.Role { return roles.Of(w.key(o)) }

// roleOf returns the first of them with one of these verbs; nil if there is none.
func (w *World) roleOf(o types.Object, verbs ...string) *roles.Role {
	for _, r := range w.rolesOf(o) {
		if slices.Contains(verbs, r.Verb) {
			return &r
		}
	}
	return nil
}
