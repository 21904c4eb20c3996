// Package analyzer finds calls of the library that cannot be right, one package at a time. It
// is for programs that run several analyzers. For one package at a time, the command does
// the same:
//
//	go vet -vettool=$(which ephemeral) ./...
//
// Names of signals are not checked here: whether something raises a signal is only known of a
// whole program. The command ephemeral vet does that.
package analyzer

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// Analyzer reports
//
//   - a view of a coordinator or a queue, such as Lane or Cost, that is not used;
//   - a signal that is held without a lease, and whose release is not kept, except in tests;
//   - a body that waits for its own coordinator with another context than its own: the
//     operation keeps its slot, and so may wait for ever.
var Analyzer = &analysis.Analyzer{
	Name: "ephemeral",
	Doc:  "report calls of github.com/ephemeralgo/ephemeral that cannot be right",
	URL:  "https://pkg.go.dev/github.com/ephemeralgo/ephemeral/cmd/ephemeral",
	Run: func(p *analysis.Pass) (any, error) {
		Check(p.Files, p.TypesInfo, func(pos token.Pos, message string) {
			if !ignored(p, pos) {
				p.Reportf(pos, "%s", message)
			}
		})
		return nil, nil
	},
}

// ignored reports whether a comment on the line, or on the line above it, says so.
func ignored(p *analysis.Pass, pos token.Pos) bool {
	line := p.Fset.Position(pos).Line
	for _, f := range p.Files {
		if f.FileStart <= pos && pos < f.FileEnd {
			for _, g := range f.Comments {
				for _, c := range g.List {
					if at := p.Fset.Position(c.Pos()).Line; c.Text == "//ephemeral:ignore" && (at == line || at == line-1) {
						return true
					}
				}
			}
		}
	}
	return false
}

// Check calls report for each fault in the files of one package.
func Check(files []*ast.File, info *types.Info, report func(pos token.Pos, message string)) {
	c := &checker{info: info, report: report, runs: map[any][]types.Object{}, of: map[types.Object]types.Object{}}
	test := func(f *ast.File) bool {
		for _, i := range f.Imports {
			if i.Path.Value == `"testing"` {
				return true
			}
		}
		return false
	}
	for _, f := range files {
		ast.Inspect(f, c.bodies)
	}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			c.program = !test(f) || ok && strings.HasPrefix(fn.Name.Name, "Example")
			ast.Inspect(d, c.dropped)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				c.waits(n, n.Type.Params, n.Body)
			case *ast.FuncDecl:
				c.waits(info.Defs[n.Name], n.Type.Params, n.Body)
			}
			return true
		})
	}
}

type checker struct {
	info   *types.Info
	report func(token.Pos, string)
	runs   map[any][]types.Object // coordinators by their body, which is an *ast.FuncLit or a *types.Func

	of map[types.Object]types.Object // coordinators by a future or a view of theirs

	parameters map[types.Object]bool // of the body

	program bool // the code is no test: in a test, the sink ends soon
}

// dropped finds calls whose result is not used.
func (c *checker) dropped(n ast.Node) bool {
	var x ast.Expr
	switch n := n.(type) {
	case *ast.ExprStmt:
		x = n.X
	case *ast.DeferStmt:
		x = n.Call
	case *ast.GoStmt:
		x = n.Call
	case *ast.AssignStmt:
		if id, ok := n.Lhs[0].(*ast.Ident); ok && len(n.Lhs) == 1 && len(n.Rhs) == 1 && id.Name == "_" {
			x = n.Rhs[0]
		}
	}
	if x == nil {
		return true
	}
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return true
	}
	fn, _ := flow.Object(call.Fun, c.info).(*types.Func)
	if fn == nil {
		return true
	}
	for _, r := range flow.RolesOf(fn) {
		switch r.Verb {
		case "view":
			c.report(call.Pos(), fn.Name()+" returns a view and changes nothing: enqueue with what it returns")
		case "release":
			lease := c.info.Types[call.Args[r.Parts[0].Index]].Value
			if c.program && lease != nil && constant.Sign(lease) <= 0 {
				c.report(call.Pos(), fn.Name()+" without a lease holds the signal until it is released, and the release is not kept")
			}
		}
	}
	return true
}

// bodies writes down which function is the body of which coordinator.
func (c *checker) bodies(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if len(n.Rhs) == 1 {
			c.body(n.Lhs[0], n.Rhs[0])
		}
	case *ast.ValueSpec:
		if len(n.Values) == 1 {
			c.body(n.Names[0], n.Values[0])
		}
	}
	return true
}

func (c *checker) body(to, made ast.Expr) {
	call, ok := ast.Unparen(made).(*ast.CallExpr)
	if !ok {
		return
	}
	fn := flow.Object(call.Fun, c.info)
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && (sel.Sel.Name == "Submit" || sel.Sel.Name == "Lane" || sel.Sel.Name == "Class") {
		if v := flow.Object(to, c.info); v != nil {
			c.of[v] = flow.Object(sel.X, c.info)
		}
	}
	if dir, name := flow.Key(fn); (dir == "core" || dir == "complete") && name == "Must" {
		c.body(to, call.Args[0])
	} else if dir == "" || !strings.HasPrefix(name, "New") {
		return
	}
	coordinator := flow.Object(to, c.info)
	if coordinator == nil {
		return
	}
	for _, arg := range call.Args {
		switch x := ast.Unparen(arg).(type) {
		case *ast.FuncLit:
			c.runs[x] = append(c.runs[x], coordinator)
		case *ast.Ident, *ast.SelectorExpr:
			if f, ok := flow.Object(x, c.info).(*types.Func); ok {
				c.runs[f] = append(c.runs[f], coordinator)
			}
		}
	}
}

// waits finds calls in a body that wait for its own coordinator with another context.
func (c *checker) waits(fn any, params *ast.FieldList, body *ast.BlockStmt) {
	if len(c.runs[fn]) == 0 || body == nil {
		return
	}
	c.parameters = map[types.Object]bool{}
	for _, f := range params.List {
		for _, id := range f.Names {
			c.parameters[c.info.Defs[id]] = true
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok || !c.foreign(call.Args[0], body) {
			return true
		}
		switch sel.Sel.Name {
		case "Do", "Wait", "Flush", "Drain", "Stop", "WaitIdle":
			for _, own := range c.runs[fn] {
				if on := flow.Object(sel.X, c.info); on == own || c.of[on] == own {
					c.report(call.Pos(), sel.Sel.Name+" waits for the coordinator whose body this is, but not with the context of the body: it returns core.ErrWouldDeadlock")
				}
			}
		}
		return true
	})
}

// foreign reports whether a context is not that of the body: it is context.Background(), or a
// variable from outside.
func (c *checker) foreign(x ast.Expr, body *ast.BlockStmt) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.CallExpr:
		fn, ok := flow.Object(x.Fun, c.info).(*types.Func)
		return ok && fn.Pkg() != nil && fn.Pkg().Path() == "context" && (fn.Name() == "Background" || fn.Name() == "TODO")
	case *ast.Ident:
		v, ok := c.info.Uses[x].(*types.Var)
		return ok && !c.parameters[v] && (v.Pos() < body.Pos() || v.Pos() > body.End()) && types.IsInterface(v.Type())
	}
	return false
}
