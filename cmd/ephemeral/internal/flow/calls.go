package flow

import (
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
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

// standard returns the result of some functions of the standard library, of append, and of Must.
func (w *World) standard(o types.Object, c *call, f *frame) ([]Text, bool) {
	arg := func(i int) []Text { return w.texts(expr{c.Args[i], c.info}, f) }
	all := []Text{{Pos: c.Pos()}}
	switch name := fullName(o); {
	case isMust(o):
		return arg(0), true
	case slices.Contains([]string{"append", "cmp.Or", "slices.Clone", "slices.Concat", "slices.Values"}, name):
		all = nil
		for i := range c.Args {
			all = append(all, arg(i)...)
		}
	case name == "strings.Join":
		lit, info := w.literal(expr{c.Args[0], c.info})
		if lit == nil {
			return nil, false
		}
		for i, el := range lit.Elts {
			if i > 0 {
				all = join(all, arg(1))
			}
			all = join(all, w.texts(expr{el, info}, f))
		}
	case name == "fmt.Sprint" && !c.Ellipsis.IsValid():
		for i, x := range c.Args {
			piece := []Text{{S: Hole}} // a number may have a space before it
			if isText(c.info.TypeOf(x)) {
				piece = arg(i)
			}
			all = join(all, piece)
		}
	case name == "fmt.Sprintf" && !c.Ellipsis.IsValid():
		all = w.formatted(c, f)
	default:
		return nil, false
	}
	return unite(all), true
}

// fullName is the name of a function with its package, such as fmt.Sprint.
func fullName(o types.Object) string {
	switch o := o.(type) {
	case *types.Func:
		return o.FullName()
	case *types.Builtin:
		return o.Name()
	}
	return ""
}

func isMust(o types.Object) bool {
	name, ok := strings.CutPrefix(fullName(o), roles.Prefix)
	return ok && (name == "core.Must" || name == "complete.Must")
}

var verbs = regexp.MustCompile(`%[-+# 0-9.*\[\]]*.`)

// formatted returns the texts of fmt.Sprintf. Arguments other than texts are holes.
func (w *World) formatted(c *call, f *frame) []Text {
	formats := w.texts(expr{c.Args[0], c.info}, f)
	if len(formats) != 1 || !formats[0].Exact() {
		return []Text{{S: Hole, Pos: c.Pos()}}
	}
	format, all, done, n := formats[0].S, []Text{{Pos: c.Pos()}}, 0, 1
	plain := func(text string) { all = join(all, []Text{{S: text, Pos: c.Args[0].Pos()}}) }
	for _, at := range verbs.FindAllStringIndex(format, -1) {
		plain(format[done:at[0]])
		verb := format[at[0]:at[1]]
		done = at[1]
		switch {
		case verb == "%%":
			plain("%")
			continue
		case (verb == "%s" || verb == "%v") && n < len(c.Args) && isText(c.info.TypeOf(c.Args[n])):
			all = join(all, w.texts(expr{c.Args[n], c.info}, f))
		default:
			all = join(all, []Text{{S: Hole}})
		}
		n++
	}
	plain(format[done:])
	return all
}

func isText(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}
