package flow

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// option returns what a field of options may be, if that is known. The field is one of the
// library, like "core Options.Sink"; "Options.Name" is one of any options. Nothing means that it is not set.
func (w *World) option(opts expr, field string) (all []expr, known bool) {
	t := w.trace(opts, nil)
	known = !t.pointer
	for _, from := range t.from {
		if _, ok := from.Expr.(*ast.CompositeLit); !ok {
			known = false
		}
		for v, x := range from.elements() {
			if strings.HasSuffix(w.names[v], field) {
				all = append(all, x)
			} else if v != nil && v.Embedded() { // options in a struct of the program
				inner, ok := w.option(x, field)
				all, known = append(all, inner...), known && ok
			}
		}
	}
	return all, known
}

// makers are the functions that make a sink of their own, if the options have none.
var makers = map[string][]string{
	"core":                  {"NewCoordinator", "NewKeyedCoordinator", "NewResultCoordinator", "NewKeyedResultCoordinator"},
	"atoms/signalaware":     {"New"},
	"atoms/fixedwork":       {"New"},
	"atoms/keyedsequential": {"New"},
	"complete":              {"NewCoordinator", "NewKeyedCoordinator", "NewResultCoordinator", "NewKeyedResultCoordinator", "NewGate", "NewPool", "NewSequencer"},
}

// options returns the argument with the options of a coordinator; none if the call makes none.
func (w *World) options(c *call) (none expr) {
	dir, name := w.key(c.callee)
	if len(c.args) == 0 || !slices.Contains(makers[dir], name) {
		return none
	}
	return c.args[len(c.args)-1]
}

// made returns the calls that make the coordinators that an expression may be; none if not all are known.
func (w *World) made(x expr) (all []*call) {
	for _, from := range w.trace(x, nil).from {
		c := callOf(from.expr)
		if c == nil || w.options(c).Expr == nil {
			return nil
		}
		all = append(all, c)
	}
	return all
}

// name is the name of a coordinator for people: its Options.Name if that is constant, or the
// variable that has it.
func (w *World) name(opts expr, or string) string {
	if names, ok := w.option(opts, "Options.Name"); ok && len(names) == 1 {
		if texts := w.texts(names[0], nil); len(texts) == 1 && texts[0].Exact() {
			return strconv.Quote(texts[0].S)
		}
	}
	return or
}
