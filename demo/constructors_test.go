package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/echo"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/anomalydetector"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

// A constructor that takes an interface refuses a nil pointer in it, and does not panic.
func TestConstructorsRefuseNilPointers(t *testing.T) {
	var (
		sink    *signals.Sink
		runner  *core.Coordinator[scheduledtasks.Task]
		call    scheduledtasks.TargetFunc
		persist = func(context.Context, lastwords.Note) error { return nil }
		value   = func(core.Snapshot) (int, bool) { return 0, true }
		deliver = func(context.Context, int) error { return nil }
		entry   = func(context.Context, echo.Entry[int]) error { return nil }
	)
	failure := func(_ any, err error) error { return err }
	calls := map[string][]func() error{
		"anomalydetector.New": {
			func() error {
				return failure(anomalydetector.New(sink, anomalydetector.Options{Pattern: "a", Threshold: 1}))
			},
			func() error {
				return failure(anomalydetector.New(runner, anomalydetector.Options{Pattern: "a", Threshold: 1}))
			},
		},
		"circuitbreaker.New": {
			func() error { return failure(circuitbreaker.New(sink, circuitbreaker.Options{})) },
			func() error { return failure(circuitbreaker.New(runner, circuitbreaker.Options{})) },
		},
		"echo.New":           {func() error { return failure(echo.New(runner, signals.NewKind[int]("a"), entry, echo.Options{})) }},
		"lastwords.New":      {func() error { return failure(lastwords.New(runner, persist, core.Options{})) }},
		"lastwords.NewRelay": {func() error { return failure(lastwords.NewRelay(runner, value, deliver, core.Options{})) }},
		"progress.New":       {func() error { return failure(progress.New(sink, "a", 1, progress.Options{})) }}, // a nil *core.Operation does nothing
		"responsibility.New": {func() error {
			return failure(responsibility.New(runner, signals.NewSink(signals.SinkOptions{}), responsibility.Options{}))
		}},
		"scheduledtasks.New": {
			func() error { return failure(scheduledtasks.New(nil, runner, scheduledtasks.Options{})) },
			func() error { return failure(scheduledtasks.New(nil, call, scheduledtasks.Options{})) },
		},
		"scheduledtasks.Load": {func() error { return failure(scheduledtasks.Load("none.json", runner, scheduledtasks.Options{})) }},
	}
	for _, name := range constructorsOfInterfaces(t) {
		coretest.Check(t, calls[name] != nil, "%s is missing in this test", name)
	}
	for name, of := range calls {
		module, _, _ := strings.Cut(name, ".")
		for i, call := range of {
			func() {
				defer func() {
					if r := recover(); r != nil {
						t.Errorf("%s, %d: it panics: %v", name, i, r)
					}
				}()
				if err := call(); err == nil || !strings.HasPrefix(err.Error(), module+": ") || !strings.Contains(err.Error(), "need") && !strings.Contains(err.Error(), "nil") {
					t.Errorf("%s, %d: the error is %v", name, i, err)
				}
			}()
		}
	}
}

// constructorsOfInterfaces finds, in all published modules, the functions that return an error
// and take a Sensor, a Raiser or a part of a coordinator.
func constructorsOfInterfaces(t *testing.T) (names []string) {
	tree := os.DirFS("..")
	for _, top := range []string{"core", "atoms", "patterns"} {
		err := fs.WalkDir(tree, top, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(tree, file)
			if err != nil {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range parsed.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv != nil || !f.Name.IsExported() || !has(f.Type.Results, "error") {
					continue
				}
				if has(f.Type.Params, "Sensor", "Raiser", "Source", "Pinner", "Target") {
					names = append(names, parsed.Name.Name+"."+f.Name.Name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// has reports whether one of the fields has a type of one of the names.
func has(fields *ast.FieldList, names ...string) bool {
	return fields != nil && slices.ContainsFunc(fields.List, func(f *ast.Field) bool {
		named := f.Type
		if s, ok := named.(*ast.SelectorExpr); ok {
			named = s.Sel
		}
		name, ok := named.(*ast.Ident)
		return ok && slices.Contains(names, name.Name)
	})
}
