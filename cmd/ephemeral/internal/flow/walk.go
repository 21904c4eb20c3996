package flow

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// walker walks over one function of a unit, or over the unit outside of functions.
type walker struct {
	w    *World
	u    *Unit
	info *types.Info
	fn   any // *types.Func or *ast.FuncLit
}

func (k *walker) expr(x ast.Expr) expr { return expr{x, k.info} }

// walk visits a node.
func (k *walker) walk(node ast.Node) {
	w := k.w
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			w.parameters(n, k.info.TypeOf(n).(*types.Signature))
			(&walker{w, k.u, k.info, n}).walk(n.Body)
			return false
		case *ast.Ident:
			if o := Object(n, k.info); o != nil && o.Pkg() != nil {
				k.u.Uses = append(k.u.Uses, o)
			}
		case *ast.AssignStmt:
			k.assign(n)
		case *ast.ValueSpec:
			for i, id := range n.Names {
				k.set(id, k.from(n.Values, i, len(n.Names)))
			}
		case *ast.RangeStmt:
			k.ranges(n)
		case *ast.CompositeLit:
			k.composite(n)
		case *ast.ExprStmt:
			k.drop(n.X, -1)
		case *ast.DeferStmt:
			k.drop(n.Call, -1)
		case *ast.GoStmt:
			w.started[n.Call] = true
			k.drop(n.Call, -1)
		case *ast.UnaryExpr:
			if o := Object(n.X, k.info); o != nil && n.Op == token.AND {
				w.shared[o] = true
				if isText(o.Type()) {
					w.unknown(o, k.expr(n.X))
				}
			}
		case *ast.CallExpr:
			k.call(n)
		case *ast.ReturnStmt:
			for i := range n.Results {
				w.returns[k.fn] = append(w.returns[k.fn], value{expr: k.expr(n.Results[i]), n: i})
			}
			if len(n.Results) == 0 {
				w.returns[k.fn] = append(w.returns[k.fn], value{part: unknown, n: -1})
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				k.compare(n.X, n.Y)
				k.compare(n.Y, n.X)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil {
				for _, c := range n.Body.List {
					for _, x := range c.(*ast.CaseClause).List {
						k.compare(n.Tag, x)
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
	case len(values) == 0:
		return value{}
	case len(values) == n:
		return value{expr: k.expr(values[i])}
	}
	v := value{expr: k.expr(values[0])} // v, ok := m[k]
	if _, ok := ast.Unparen(v.Expr).(*ast.CallExpr); ok {
		v.part, v.n = result, i
	}
	return v
}

func (k *walker) assign(n *ast.AssignStmt) {
	for i, to := range n.Lhs {
		v := k.from(n.Rhs, i, len(n.Lhs))
		if n.Tok == token.ADD_ASSIGN && k.w.fields[Object(to, k.info)] == "" {
			v.part = unknown // the text grows
		}
		k.set(to, v)
		if id, ok := to.(*ast.Ident); ok && id.Name == "_" {
			k.drop(v.Expr, v.n)
		}
	}
}

// ranges writes down the variables of a loop.
func (k *walker) ranges(n *ast.RangeStmt) {
	over := value{expr: k.expr(n.X)}
	if n.Value != nil {
		k.set(n.Value, over)
	}
	if _, ok := k.info.TypeOf(n.X).Underlying().(*types.Signature); !ok {
		over.part = keys
	} else if n.Value != nil {
		over.part = unknown
	}
	if n.Key != nil {
		k.set(n.Key, over)
	}
}

func (k *walker) drop(x ast.Expr, n int) {
	if c, ok := ast.Unparen(x).(*ast.CallExpr); ok {
		k.w.dropped = append(k.w.dropped, drop{&call{c, k.info, k.u, k.fn, expr{}}, n})
	}
}

// use writes down a place where the library may get a text.
func (k *walker) use(u use) {
	u.unit, u.fn = k.u, k.fn
	k.w.used = append(k.w.used, u)
}

// set writes down that a value is assigned.
func (k *walker) set(to ast.Expr, v value) {
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
	for of := operand(to); of != nil; of = operand(to) {
		to = of
	}
	o := Object(to, k.info)
	if o == nil {
		return
	}
	if sel, ok := to.(*ast.SelectorExpr); ok {
		of := Object(sel.X, k.info)
		k.w.parts[of] = append(k.w.parts[of], set{o, v.expr})
		for _, of := range embedded(sel, k.info) {
			k.w.parts[of] = append(k.w.parts[of], set{o, v.expr})
		}
		if list, ok := operand(sel.X).(*ast.SelectorExpr); ok { // such as opts.Lanes[0].Name = "x"
			of := Object(list.X, k.info)
			k.w.parts[of] = append(k.w.parts[of], set{Object(list, k.info), v.expr})
		}
	}
	k.gets(o, v, nil)
}

// embedded returns the embedded fields that a selector leaves out, such as Options in config.Lanes.
func embedded(sel *ast.SelectorExpr, info *types.Info) (all []*types.Var) {
	s := info.Selections[sel]
	if s == nil {
		return nil // of a package
	}
	t := s.Recv()
	for _, i := range s.Index()[:len(s.Index())-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		field := t.Underlying().(*types.Struct).Field(i)
		all, t = append(all, field.Origin()), field.Type()
	}
	return all
}

// gets writes down the value of a variable or a field, which a literal may set.
func (k *walker) gets(o types.Object, v value, of *ast.CompositeLit) {
	k.w.assigned[o] = append(k.w.assigned[o], v)
	if k.w.fields[o] != "" && v.part == whole {
		k.use(use{object: o, value: v.expr, of: of})
	}
}

// composite writes down the fields that a literal sets.
func (k *walker) composite(n *ast.CompositeLit) {
	t := k.info.TypeOf(n)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, x := range n.Elts {
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			k.gets(Object(kv.Key, k.info), value{expr: k.expr(kv.Value)}, n)
		} else {
			k.gets(s.Field(i).Origin(), value{expr: k.expr(x)}, n)
		}
	}
}

func (k *walker) call(n *ast.CallExpr) {
	w, c, read := k.w, &call{n, k.info, k.u, k.fn, expr{}}, false
	fun := ast.Unparen(n.Fun)
	switch o := Object(fun, k.info).(type) {
	case *types.Func:
		w.calls[o] = append(w.calls[o], c)
		if dir, _ := w.key(o); dir != "" {
			k.use(use{object: o, call: c, value: k.expr(n)})
		}
		read = w.own[o.Pkg()]
	case *types.Var:
		w.dynamic[o] = append(w.dynamic[o], c)
		read = true
	case *types.Builtin:
		if o.Name() == "copy" {
			k.set(n.Args[0], value{expr: k.expr(n.Args[1])})
		}
	case nil:
		w.calls[fun] = append(w.calls[fun], c) // if it is a function literal
	}
	for i, arg := range n.Args {
		if lit, ok := ast.Unparen(arg).(*ast.CompositeLit); ok {
			w.labels[lit] = n
		}
		if read {
			continue
		}
		if f, ok := Object(arg, k.info).(*types.Func); ok {
			w.escapes[f] = true
			for _, r := range w.rolesOf(f) {
				if r.Verb == "raises" { // other code calls it, with any name
					k.u.add(Fact{Verb: "raises", API: f.Name(), Pos: arg.Pos(), InBody: true, Texts: []Text{{S: Hole, Pos: arg.Pos()}}})
				}
			}
		}
		if s, ok := typeOf(k.info, n.Fun).Underlying().(*types.Signature); ok && i < s.Params().Len() && types.IsInterface(s.Params().At(i).Type()) {
			if p, ok := typeOf(k.info, arg).Underlying().(*types.Pointer); ok {
				k.decoded(p.Elem(), expr{&ast.BadExpr{From: arg.Pos()}, nil}, map[types.Type]bool{})
			}
		}
	}
}

// decoded notes that other code may set the fields of a struct, such as json.Unmarshal.
func (k *walker) decoded(t types.Type, at expr, seen map[types.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t := t.Underlying().(type) {
	case *types.Struct:
		for f := range t.Fields() {
			if n := named(f.Type()); f.Exported() && (n == nil || k.w.own[n.Obj().Pkg()] || coreType(n) != "") {
				k.w.unknown(f.Origin(), at)
				k.decoded(f.Type(), at, seen)
			}
			for _, r := range k.w.rolesOf(f.Origin()) {
				if strings.HasPrefix(r.Verb, "defines ") {
					k.u.add(Fact{Verb: r.Verb, API: f.Name(), Pos: at.Pos(), Texts: []Text{{S: Hole, Pos: at.Pos()}}})
				}
			}
		}
	case interface{ Elem() types.Type }: // a slice, a map or a pointer
		k.decoded(t.Elem(), at, seen)
	}
}

// tagged does the same for the fields of a struct that have tags.
func (w *World) tagged(spec *ast.TypeSpec, info *types.Info) {
	if t, ok := info.TypeOf(spec.Type).(*types.Struct); ok {
		for i := range t.NumFields() {
			if t.Tag(i) != "" {
				w.unknown(t.Field(i), expr{spec.Name, info})
			}
		}
	}
}

// unknown notes that a variable or a field may have any value.
func (w *World) unknown(o types.Object, at expr) {
	w.assigned[o] = append(w.assigned[o], value{expr: at, part: unknown})
}

// implementations returns the methods of the program that a call of a method may call: of that
// of an interface, each method with its name.
func (w *World) implementations(m *types.Func) (all []*types.Func) {
	recv := m.Signature().Recv()
	if recv == nil || !w.own[m.Pkg()] || !types.IsInterface(recv.Type()) {
		return nil
	}
	face := recv.Type().Underlying().(*types.Interface)
	for _, p := range w.Packages {
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
	return all
}

// compare notes a comparison of what may be the name of a signal with a text.
func (k *walker) compare(name, with ast.Expr) {
	if t := k.info.Types[name]; t.Value == nil && isText(typeOf(k.info, name)) {
		k.use(use{name: k.expr(name), value: k.expr(with)})
	}
}
