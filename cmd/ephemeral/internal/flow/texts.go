package flow

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/roles"
)

// texts returns what an expression may be. A list has the texts of its elements. A sink and
// an operation have the text "", and a view of them has its prefix. A kind has its name.
func (w *World) texts(x expr, f *frame) (all []Text) {
	if f == nil {
		if all, ok := w.memo[x]; ok {
			return all
		}
		w.memo[x] = []Text{{S: Hole, Pos: x.Pos()}} // while they are found: a text made of itself may be any
		defer func() { w.memo[x] = all }()
	}
	for _, o := range w.trace(x, f).from {
		for _, t := range w.textsOf(o) {
			t.Loose = t.Loose || o.loose
			if !t.Via.IsValid() {
				t.Via = o.via
			}
			all = append(all, t)
		}
	}
	return unite(all)
}

// textsOf returns the texts that an origin makes.
func (w *World) textsOf(o origin) (all []Text) {
	if t := o.info.Types[o.Expr]; t.Value != nil && t.Value.Kind() == constant.String {
		return []Text{{S: constant.StringVal(t.Value), Pos: o.Pos()}}
	} else if t.Value != nil {
		return []Text{{S: t.Value.ExactString(), Pos: o.Pos()}}
	} else if isRaiser(t.Type) {
		return []Text{{Pos: o.Pos()}}
	}
	switch e := ast.Unparen(o.Expr).(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return join(w.texts(o.of(e.X), o.frame), w.texts(o.of(e.Y), o.frame))
		}
	case *ast.CompositeLit:
		for _, el := range o.elements() {
			all = append(all, w.texts(el, o.frame)...)
		}
		return all
	case *ast.KeyValueExpr:
		m, ok := w.list(o.of(e.Key), o.frame)
		if _, isMap := typeOf(m.expr).Underlying().(*types.Map); ok && isMap {
			for _, el := range m.Expr.(*ast.CompositeLit).Elts {
				all = append(all, w.texts(m.of(el.(*ast.KeyValueExpr).Key), m.frame)...)
			}
			return all
		}
	case *ast.Ident, *ast.SelectorExpr:
		v := Object(e, o.info)
		if w.roleOf(v, "raised") != nil {
			return []Text{{S: Known, Pos: o.Pos()}}
		} else if r := w.roleOf(v, "is"); r != nil {
			return w.instance(*r, nil, o.frame, o.Pos())
		}
	case *ast.CallExpr:
		c := callOf(o.expr)
		if r := w.roleOf(c.callee, "is"); r != nil {
			return w.instance(*r, c, o.frame, o.Pos())
		} else if all, ok := w.standard(c, o.frame); ok {
			return all
		}
	}
	return []Text{{S: Hole, Pos: o.Pos()}}
}

// isRaiser reports whether a type is *signals.Sink or *core.Operation.
func isRaiser(t types.Type) bool { return slices.Contains([]string{"Sink", "Operation"}, coreType(t)) }

func isText(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

// standard returns the result of some functions of the standard library.
func (w *World) standard(c *call, f *frame) ([]Text, bool) {
	all := []Text{{Pos: c.Pos()}}
	switch name := fullName(c.callee); {
	case name == "strings.Join":
		list, ok := w.list(c.args[0], f)
		sep := []Text{{}}
		for _, el := range list.elements() {
			all = join(join(all, sep), w.texts(el, list.frame))
			sep = w.texts(c.args[1], f)
		}
		return all, ok
	case name == "fmt.Sprint" && !c.Ellipsis.IsValid():
		for _, x := range c.args { // a number may have a space before it
			all = join(all, w.printed(x, f))
		}
	case name == "fmt.Sprintf" && !c.Ellipsis.IsValid():
		return w.formatted(c, f)
	default:
		return nil, false
	}
	return all, true
}

// printed returns the texts of an argument of package fmt. Those of other types are holes.
func (w *World) printed(x expr, f *frame) []Text {
	if isText(typeOf(x)) {
		return w.texts(x, f)
	}
	return []Text{{S: Hole}}
}

// fullName is the name of a function with its package, such as fmt.Sprint or core.Must.
func fullName(o types.Object) string {
	switch o := o.(type) {
	case *types.Func:
		return strings.TrimPrefix(o.FullName(), roles.Prefix)
	case *types.Builtin:
		return o.Name()
	}
	return ""
}

var verbs = regexp.MustCompile(`%[-+# 0-9.*\[\]]*.`)

// formatted returns the texts of fmt.Sprintf.
func (w *World) formatted(c *call, f *frame) ([]Text, bool) {
	formats := w.texts(c.args[0], f)
	if len(formats) != 1 || !formats[0].Exact() {
		return nil, false
	}
	format, all, done, n := formats[0].S, []Text{{Pos: c.Pos()}}, 0, 1
	plain := func(text string) { all = join(all, []Text{{S: text, Pos: c.args[0].Pos()}}) }
	for _, at := range verbs.FindAllStringIndex(format, -1) {
		plain(format[done:at[0]])
		verb := format[at[0]:at[1]]
		done = at[1]
		switch {
		case verb == "%%":
			plain("%")
			continue
		case (verb == "%s" || verb == "%v") && n < len(c.args):
			all = join(all, w.printed(c.args[n], f))
		default:
			all = join(all, []Text{{S: Hole}})
		}
		n++
	}
	plain(format[done:])
	return all, true
}

// instance returns the texts of a template. For a function, c is the call. A field that is set
// stands for its new value alone.
func (w *World) instance(r roles.Role, c *call, f *frame, pos token.Pos) []Text {
	all := []Text{{}}
	for _, p := range r.Parts {
		piece := []Text{{S: p.Text}}
		switch {
		case p.Ref != "" && c != nil && c.CallExpr == nil && p.Ref == w.names[c.callee]:
			piece = w.texts(c.expr, f)
		case p.Ref != "":
			piece = w.reference(p)
		case p.Slot && c == nil:
			piece = []Text{{S: Hole, Pos: pos}}
		case p.Slot:
			piece = nil
			for _, arg := range c.arguments(p.Index) {
				piece = append(piece, w.texts(arg, f)...)
			}
		}
		all = join(all, piece)
	}
	for i := range all {
		if !all[i].Pos.IsValid() {
			all[i].Pos = pos
		}
	}
	return unite(all)
}

// reference returns the values of a field of the library.
func (w *World) reference(p roles.Part) (all []Text) {
	for _, o := range w.objects[p.Ref] {
		for _, x := range w.assigned[o] {
			all = append(all, w.texts(x, nil)...)
		}
	}
	all = slices.DeleteFunc(all, func(t Text) bool { return t.S == "" })
	for i := range all {
		all[i].Loose = false // any of them is right in a template
	}
	if p.Or != "" {
		all = append(all, Text{S: p.Or})
	}
	return unite(all)
}
