package flow

import (
	"go/types"
	"strings"
)

// result returns the n-th result of a call.
func (w *World) result(c *call, n int, f *frame) []Text {
	unknown := []Text{{S: Hole, Pos: c.Pos()}}
	if t := c.info.Types[c.Fun]; t.IsType() {
		if isText(t.Type) && isText(c.info.TypeOf(c.Args[0])) || types.IsInterface(t.Type) || isList(t.Type) {
			return w.texts(expr{c.Args[0], c.info}, f)
		}
		return unknown
	}
	o := Object(c.Fun, c.info)
	for _, r := range w.rolesOf(o) {
		if r.Verb == "is" {
			return w.instance(r, c, f, c.Pos())
		}
	}
	if all, ok := w.standard(o, c, f); ok {
		return all
	}
	var all []Text
	if f != nil && f.depth > 5 {
		return unknown
	}
	for _, fn := range w.functions(expr{c.Fun, c.info}) {
		inner := &frame{fn: fn, call: c, up: f}
		if f != nil {
			inner.depth = f.depth + 1
		}
		for _, r := range w.returns[fn] {
			if r.n == n {
				all = append(all, w.texts(r.expr, inner)...)
			}
		}
	}
	if len(all) == 0 {
		return unknown
	}
	return unite(all)
}

func isList(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Slice, *types.Array:
		return true
	}
	return false
}

// standard returns the result of some functions of the standard library, and of append.
func (w *World) standard(o types.Object, c *call, f *frame) ([]Text, bool) {
	arg := func(i int) []Text { return w.texts(expr{c.Args[i], c.info}, f) }
	if b, ok := o.(*types.Builtin); ok && b.Name() == "append" || isFunc(o, "cmp", "Or") || isFunc(o, "slices", "Concat") ||
		isFunc(o, "slices", "Clone") || isFunc(o, "slices", "Values") {
		var all []Text
		for i := range c.Args {
			all = append(all, arg(i)...)
		}
		return unite(all), true
	}
	switch {
	case isMust(o):
		return arg(0), true
	case isFunc(o, "strings", "Join"):
		lit, info := w.literal(expr{c.Args[0], c.info})
		if lit == nil {
			return nil, false
		}
		all := []Text{{}}
		for i, el := range lit.Elts {
			if i > 0 {
				all = join(all, arg(1))
			}
			all = join(all, w.texts(expr{el, info}, f))
		}
		return unite(all), true
	case isFunc(o, "fmt", "Sprintf") && !c.Ellipsis.IsValid():
		return w.formatted(c, f), true
	case isFunc(o, "fmt", "Sprint") && !c.Ellipsis.IsValid():
		all := []Text{{Pos: c.Pos()}}
		for i := range c.Args {
			all = join(all, arg(i))
		}
		return unite(all), true
	}
	return nil, false
}

func isFunc(o types.Object, path, name string) bool {
	f, ok := o.(*types.Func)
	return ok && f.Pkg() != nil && f.Pkg().Path() == path && f.Name() == name && f.Signature().Recv() == nil
}

// formatted returns the texts of fmt.Sprintf. Arguments other than texts are holes.
func (w *World) formatted(c *call, f *frame) []Text {
	all := []Text{{Pos: c.Pos()}}
	format := w.texts(expr{c.Args[0], c.info}, f)
	if len(format) != 1 || !format[0].Exact() {
		return []Text{{S: Hole, Pos: c.Pos()}}
	}
	rest, n := format[0].S, 1
	for {
		i := strings.IndexByte(rest, '%')
		if i < 0 || i == len(rest)-1 {
			return unite(join(all, []Text{{S: rest, Pos: c.Args[0].Pos()}}))
		}
		all = join(all, []Text{{S: rest[:i], Pos: c.Args[0].Pos()}})
		verb := rest[i+1]
		end := i + 1 + len(rest[i+1:]) - len(strings.TrimLeft(rest[i+1:], "+-# 0123456789.*[]"))
		switch {
		case verb == '%':
			all, end = join(all, []Text{{S: "%"}}), i+1
		case (verb == 's' || verb == 'v') && n < len(c.Args) && isText(c.info.TypeOf(c.Args[n])):
			all = join(all, w.texts(expr{c.Args[n], c.info}, f))
			n++
		default:
			all = join(all, []Text{{S: Hole}})
			n++
		}
		if end >= len(rest) {
			return unite(all)
		}
		rest = rest[end+1:]
	}
}

func isText(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}
