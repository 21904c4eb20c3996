package flow

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// walker walks over one unit.
type walker struct {
	w    *World
	u    *Unit
	info *types.Info
}

// walk visits a node inside a function.
func (k *walker) walk(node ast.Node, fn any) {
	w := k.w
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			w.parameters(n, k.info.TypeOf(n).(*types.Signature))
			k.walk(n.Body, n)
			return false
		case *ast.Ident:
			if o := Object(n, k.info); o != nil && o.Pkg() != nil {
				k.u.Uses = append(k.u.Uses, o)
			}
		case *ast.AssignStmt:
			k.assign(n, fn)
		case *ast.ValueSpec:
			for i, id := range n.Names {
				k.set(id, k.from(n.Values, i, len(n.Names)), fn)
			}
		case *ast.RangeStmt:
			if n.Key != nil {
				what := value{expr: expr{n.X, k.info}, part: keys}
				if _, ok := k.info.TypeOf(n.X).Underlying().(*types.Signature); ok {
					what.part = unknown
				}
				k.set(n.Key, what, fn)
			}
			if n.Value != nil {
				k.set(n.Value, value{expr: expr{n.X, k.info}}, fn)
			}
		case *ast.CompositeLit:
			k.composite(n, fn)
		case *ast.ExprStmt:
			k.drop(n.X, -1, fn)
		case *ast.DeferStmt:
			k.drop(n.Call, -1, fn)
		case *ast.GoStmt:
			w.started[n.Call] = true
			k.drop(n.Call, -1, fn)
		case *ast.UnaryExpr:
			if o := Object(n.X, k.info); o != nil && n.Op == token.AND {
				w.shared[o] = true
				if isText(o.Type()) {
					w.assigned[o] = append(w.assigned[o], value{expr: expr{n.X, k.info}, part: unknown})
				}
			}
		case *ast.CallExpr:
			k.call(n, fn)
		case *ast.ReturnStmt:
			for i := range n.Results {
				w.returns[fn] = append(w.returns[fn], value{expr: expr{n.Results[i], k.info}, n: i})
			}
			if len(n.Results) == 0 {
				w.returns[fn] = append(w.returns[fn], value{part: unknown, n: -1})
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				k.compare(n.X, n.Y, fn)
				k.compare(n.Y, n.X, fn)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil {
				for _, c := range n.Body.List {
					for _, x := range c.(*ast.CaseClause).List {
						k.compare(n.Tag, x, fn)
					}
				}
			}
		}
		return true
	})
}

// from returns the value of the i-th of n variables.
func (k *walker) from(values []ast.Expr, i, n int) value {
	switch {
	case len(values) == n:
		return value{expr: expr{values[i], k.info}}
	case len(values) == 1:
		if _, ok := ast.Unparen(values[0]).(*ast.CallExpr); ok {
			return value{expr: expr{values[0], k.info}, part: result, n: i}
		}
		return value{expr: expr{values[0], k.info}} // v, ok := m[k]
	}
	return value{}
}

func (k *walker) assign(n *ast.AssignStmt, fn any) {
	for i, to := range n.Lhs {
		v := k.from(n.Rhs, i, len(n.Lhs))
		if n.Tok == token.ADD_ASSIGN {
			if o := Object(to, k.info); k.w.fields[o] == "" {
				v.part = unknown // the text grows
			}
		}
		k.set(to, v, fn)
		if id, ok := to.(*ast.Ident); ok && id.Name == "_" && v.Expr != nil {
			k.drop(v.Expr, v.n, fn)
		}
	}
}

func (k *walker) drop(x ast.Expr, n int, fn any) {
	if c, ok := ast.Unparen(x).(*ast.CallExpr); ok {
		k.w.dropped = append(k.w.dropped, drop{&call{c, k.info, k.u, fn}, n})
	}
}

// set writes down that a value is assigned.
func (k *walker) set(to ast.Expr, v value, fn any) {
	if v.Expr == nil {
		return
	}
	made := v.Expr
	if c, ok := ast.Unparen(made).(*ast.CallExpr); ok && isMust(Object(c.Fun, k.info)) {
		made = c.Args[0]
	}
	if c, ok := ast.Unparen(made).(*ast.CallExpr); ok && v.n == 0 {
		k.w.holder[c] = types.ExprString(to)
	}
	switch x := ast.Unparen(to).(type) {
	case *ast.IndexExpr: // an element; see World.texts
		to = x.X
	case *ast.StarExpr:
		to = x.X
	}
	o := Object(to, k.info)
	if o == nil {
		return
	}
	k.w.assigned[o] = append(k.w.assigned[o], v)
	if sel, ok := to.(*ast.SelectorExpr); ok {
		of := Object(sel.X, k.info)
		k.w.parts[of] = append(k.w.parts[of], set{o, v.expr})
	}
	if k.w.fields[o] != "" && v.part == whole {
		k.w.used = append(k.w.used, use{unit: k.u, field: o, value: v.expr, fn: fn, pos: to.Pos()})
	}
}

// composite writes down the fields that a literal sets.
func (k *walker) composite(n *ast.CompositeLit, fn any) {
	t := k.info.TypeOf(n)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	on := k.w.holder[k.w.labels[n]]
	for _, x := range n.Elts {
		if kv, ok := x.(*ast.KeyValueExpr); ok && strings.HasSuffix(k.w.fields[Object(kv.Key, k.info)], "Options.Name") {
			if name := k.info.Types[kv.Value].Value; name != nil {
				on = name.ExactString()
			}
		}
	}
	for i, x := range n.Elts {
		var field types.Object
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			field, x = Object(kv.Key, k.info), kv.Value
		} else if i < s.NumFields() {
			field = s.Field(i).Origin()
		}
		if field == nil {
			continue
		}
		v := expr{x, k.info}
		k.w.assigned[field] = append(k.w.assigned[field], value{expr: v})
		if k.w.fields[field] != "" {
			k.w.used = append(k.w.used, use{unit: k.u, field: field, value: v, fn: fn, pos: x.Pos(), on: on})
		}
	}
}

func (k *walker) call(n *ast.CallExpr, fn any) {
	c := &call{n, k.info, k.u, fn}
	k.w.around[n] = fn
	fun := ast.Unparen(n.Fun)
	if lit, ok := fun.(*ast.FuncLit); ok {
		k.w.calls[lit] = append(k.w.calls[lit], c)
	}
	o := Object(fun, k.info)
	read := false
	switch o := o.(type) {
	case *types.Func:
		k.w.calls[o] = append(k.w.calls[o], c)
		if dir, _ := Key(o); dir != "" {
			k.w.used = append(k.w.used, use{unit: k.u, call: c, fn: fn, pos: n.Pos()})
		}
		read = k.w.own[o.Pkg()]
		if recv := o.Signature().Recv(); read && recv != nil && types.IsInterface(recv.Type()) {
			k.implementations(o, recv.Type().Underlying().(*types.Interface), c)
		}
	case *types.Var:
		k.w.dynamic[o] = append(k.w.dynamic[o], c)
		read = true
	}
	for i, arg := range n.Args {
		if lit, ok := ast.Unparen(arg).(*ast.CompositeLit); ok {
			k.w.labels[lit] = n
		}
		if read {
			break
		}
		if f, ok := Object(arg, k.info).(*types.Func); ok {
			k.w.escapes[f] = true
			for _, r := range RolesOf(f) {
				if r.Verb == "raises" { // other code calls it, with any name
					k.u.add(Fact{Verb: "raises", API: f.Name(), Pos: arg.Pos(), InBody: true, Texts: []Text{{S: Hole, Pos: arg.Pos()}}})
				}
			}
		}
		if s, ok := typeOf(k.info, n.Fun).Underlying().(*types.Signature); ok && i < s.Params().Len() && types.IsInterface(s.Params().At(i).Type()) {
			if p, ok := typeOf(k.info, arg).Underlying().(*types.Pointer); ok {
				k.w.decoded(p.Elem(), arg.Pos(), map[types.Type]bool{})
			}
		}
	}
}

// decoded notes that other code may set the fields of a struct, such as json.Unmarshal.
func (w *World) decoded(t types.Type, pos token.Pos, seen map[types.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t := t.Underlying().(type) {
	case *types.Struct:
		for f := range t.Fields() {
			if n := named(f.Type()); f.Exported() && (n == nil || w.own[n.Obj().Pkg()]) {
				w.assigned[f.Origin()] = append(w.assigned[f.Origin()], value{expr: expr{&ast.BadExpr{From: pos}, nil}, part: unknown})
				w.decoded(f.Type(), pos, seen)
			}
		}
	case *types.Slice:
		w.decoded(t.Elem(), pos, seen)
	case *types.Map:
		w.decoded(t.Elem(), pos, seen)
	case *types.Pointer:
		w.decoded(t.Elem(), pos, seen)
	}
}

// tagged does the same for the fields of a struct that have tags.
func (w *World) tagged(spec *ast.TypeSpec, info *types.Info) {
	if t, ok := spec.Type.(*ast.StructType); ok {
		for _, f := range t.Fields.List {
			for _, id := range f.Names {
				if f.Tag != nil {
					o := info.Defs[id]
					w.assigned[o] = append(w.assigned[o], value{expr: expr{id, info}, part: unknown})
				}
			}
		}
	}
}

// implementations counts a call of a method of an interface as a call of each method with its
// name.
func (k *walker) implementations(m *types.Func, face *types.Interface, c *call) {
	all, ok := k.w.methodsOf[m]
	for _, p := range k.w.Packages {
		if ok {
			break
		}
		for _, name := range p.Types.Scope().Names() {
			t, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
			if !ok || types.IsInterface(t.Type()) || !types.Implements(types.NewPointer(t.Type()), face) {
				continue
			}
			o, _, _ := types.LookupFieldOrMethod(types.NewPointer(t.Type()), true, p.Types, m.Name())
			if f, ok := o.(*types.Func); ok {
				all = append(all, f.Origin())
			}
		}
	}
	k.w.methodsOf[m] = all
	for _, f := range all {
		k.w.calls[f] = append(k.w.calls[f], c)
	}
}

// compare notes a comparison of the name of a signal with a text.
func (k *walker) compare(name, with ast.Expr, fn any) {
	o := Object(name, k.info)
	for _, r := range k.w.rolesOf(o) {
		if r.Verb == "raised" {
			k.w.used = append(k.w.used, use{unit: k.u, field: o, value: expr{with, k.info}, fn: fn, pos: with.Pos(), compared: true})
		}
	}
}
