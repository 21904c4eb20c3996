package flow

import (
	"go/ast"
	"go/token"
	"go/types"
)

// walker walks over one function of a unit, or over the unit outside of functions.
type walker struct {
	w    *World
	u    *Unit
	info *types.Info
	fn   any // *types.Func or *ast.FuncLit
}

func (k *walker) expr(x ast.Expr) expr { return expr{Expr: x, info: k.info} }

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
			for field, v := range k.expr(n).elements() {
				if field != nil && field.IsField() {
					k.gets(field, v, k.expr(n))
				}
			}
		case *ast.ExprStmt:
			k.drop(k.expr(n.X))
		case *ast.DeferStmt:
			k.drop(k.expr(n.Call))
		case *ast.GoStmt:
			w.started[n.Call] = true
			k.drop(k.expr(n.Call))
		case *ast.UnaryExpr:
			if o := Object(n.X, k.info); o != nil && n.Op == token.AND {
				w.unknown(o, n.Pos())
			}
		case *ast.Field:
			for _, id := range n.Names {
				if n.Tag != nil { // other code may set it, such as json.Unmarshal
					w.unknown(k.info.Defs[id], id.Pos())
				}
			}
		case *ast.CallExpr:
			k.call(n)
		case *ast.ReturnStmt:
			for i := range w.results[k.fn].Len() {
				k.gets(w.results[k.fn].At(i), k.from(n.Results, i, w.results[k.fn].Len()), expr{})
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
func (k *walker) from(values []ast.Expr, i, n int) expr {
	switch {
	case len(values) == 0:
		return expr{}
	case len(values) == n:
		return k.expr(values[i])
	}
	v := k.expr(values[0]) // v, ok := m[k]
	if callOf(v) != nil {
		v.n = i
	}
	return v
}

func (k *walker) assign(n *ast.AssignStmt) {
	for i, to := range n.Lhs {
		v := k.from(n.Rhs, i, len(n.Lhs))
		if n.Tok == token.ADD_ASSIGN && k.w.names[Object(to, k.info)] == "" {
			v = unknown(n.Pos()) // the text grows
		}
		k.set(to, v)
		if id, ok := to.(*ast.Ident); ok && id.Name == "_" {
			k.drop(v)
		}
	}
}

// ranges writes down the variables of a loop. The keys of m are written m: m.
func (k *walker) ranges(n *ast.RangeStmt) {
	key := k.expr(&ast.KeyValueExpr{Key: n.X, Value: n.X})
	if _, ok := k.info.TypeOf(n.X).Underlying().(*types.Signature); ok && n.Value == nil {
		key = k.expr(n.X)
	}
	if n.Value != nil {
		k.set(n.Value, k.expr(n.X))
	}
	if n.Key != nil {
		k.set(n.Key, key)
	}
}

// drop writes down that a result is not kept.
func (k *walker) drop(x expr) {
	if c := callOf(x); c != nil {
		c.unit, c.fn = k.u, k.fn
		k.w.dropped = append(k.w.dropped, c)
	}
}

// use writes down a place where the library may get a text without a call.
func (k *walker) use(field types.Object, on expr, args ...expr) {
	k.w.used = append(k.w.used, &call{expr: args[0], callee: field, on: on, args: args, variadic: len(args), unit: k.u, fn: k.fn})
}

// set writes down that a value is assigned. The variable of which a field is set gets a literal
// with that field.
func (k *walker) set(to ast.Expr, v expr) {
	if v.Expr == nil {
		return
	}
	if v.n == 0 {
		k.w.holder[ast.Unparen(v.Expr)] = types.ExprString(to)
	}
	for of := operand(to); of != nil; of = operand(to) {
		to = of
	}
	o := Object(to, k.info)
	if o == nil {
		return
	}
	k.gets(o, v, expr{})
	if sel, ok := to.(*ast.SelectorExpr); ok {
		part := k.expr(&ast.CompositeLit{Lbrace: to.Pos(), Rbrace: to.End(), Elts: []ast.Expr{&ast.KeyValueExpr{Key: sel.Sel, Value: v.Expr}}})
		for _, of := range embedded(sel, k.info) {
			k.gets(of, part, expr{})
		}
		k.set(sel.X, part)
	}
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
func (k *walker) gets(o types.Object, v, of expr) {
	if v.Expr == nil {
		return
	}
	k.w.assigned[o] = append(k.w.assigned[o], v)
	if k.w.names[o] != "" {
		k.use(o, of, v)
	}
}

// call writes down a call. Code that is not read may call the functions that it gets, and may set
// what a pointer points to.
func (k *walker) call(n *ast.CallExpr) {
	w, c := k.w, callOf(k.expr(n))
	c.unit, c.fn = k.u, k.fn
	fn, _ := c.callee.(*types.Func)
	_, isVar := c.callee.(*types.Var)
	switch {
	case fn != nil:
		w.calls[fn] = append(w.calls[fn], c)
		if w.names[fn] != "" {
			w.used = append(w.used, c)
		}
	case isVar || c.callee == nil:
		w.dynamic = append(w.dynamic, c)
	case fullName(c.callee) == "copy":
		k.set(n.Args[0], c.args[1])
	}
	s, _ := typeOf(c.of(n.Fun)).Underlying().(*types.Signature)
	for i, arg := range n.Args {
		if name := w.holder[n]; name != "" {
			w.holder[ast.Unparen(arg)] = name
		}
		if isVar || fn != nil && w.own[fn.Pkg()] {
			continue
		}
		if f, ok := Object(arg, k.info).(*types.Func); ok {
			w.escapes[f] = true
			if w.roleOf(f, "raises") != nil { // with any name
				k.u.add(Fact{Verb: "raises", API: f.Name(), Pos: arg.Pos(), InBody: true, Texts: []Text{{S: Hole, Pos: arg.Pos()}}})
			}
		}
		p, ok := typeOf(c.of(arg)).Underlying().(*types.Pointer)
		if ok && s != nil && i < s.Params().Len() && types.IsInterface(s.Params().At(i).Type()) {
			k.decoded(p.Elem(), arg.Pos(), map[types.Type]bool{})
		}
	}
}

// decoded notes that other code may set the fields of a struct, such as json.Unmarshal.
func (k *walker) decoded(t types.Type, at token.Pos, seen map[types.Type]bool) {
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
			if r := k.w.roleOf(f.Origin(), "defines lane", "defines class"); r != nil {
				k.u.add(Fact{Verb: r.Verb, API: f.Name(), Pos: at, Texts: []Text{{S: Hole, Pos: at}}})
			}
		}
	case interface{ Elem() types.Type }: // a slice, a map or a pointer
		k.decoded(t.Elem(), at, seen)
	}
}

// unknown notes that a variable or a field may have any value.
func (w *World) unknown(o types.Object, at token.Pos) {
	w.assigned[o] = append(w.assigned[o], unknown(at))
}

// implemented writes down which methods of the program the calls of a method may call: of that of
// an interface, each method with its name.
func (w *World) implemented(m *types.Func, calls []*call) {
	recv := m.Signature().Recv()
	if recv == nil || !w.own[m.Pkg()] || !types.IsInterface(recv.Type()) {
		return
	}
	for _, u := range w.Units {
		t, ok := u.Object.(*types.TypeName)
		if !ok || !types.Implements(types.NewPointer(t.Type()), recv.Type().Underlying().(*types.Interface)) {
			continue
		}
		o, _, _ := types.LookupFieldOrMethod(t.Type(), true, m.Pkg(), m.Name())
		if f, ok := o.(*types.Func); ok {
			w.calls[f.Origin()] = append(w.calls[f.Origin()], calls...)
		}
	}
}

// compare notes a comparison of what may be the name of a signal with a text.
func (k *walker) compare(name, with ast.Expr) {
	if t := k.info.Types[name]; t.Value == nil && isText(typeOf(k.expr(name))) {
		k.use(nil, expr{}, k.expr(with), k.expr(name))
	}
}
