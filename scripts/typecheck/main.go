// Command typecheck reads all packages of the workspace, with their tests, as another system
// compiles them:
//
//	go run ./scripts/typecheck windows/amd64
//
// It checks names and types from source and compiles nothing, so it takes seconds where go vet
// takes minutes. It fails if a package does not compile there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/token"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
)

func main() {
	command.Main("typecheck", []string{"GOOS/GOARCH"}, func(ctx context.Context, root string) error {
		return check(ctx, root, flag.Arg(0), "work")
	})
}

// check reports what does not compile on a system in the packages of dir that match the pattern.
func check(ctx context.Context, dir, system, pattern string) error {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return fmt.Errorf("%q is not GOOS/GOARCH", system)
	}
	found, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir, Tests: true, Fset: token.NewFileSet(),
		Env: append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		// With NeedDeps, types come from source. Without it, the go command compiles what packages import.
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedModule,
	}, pattern)
	var errs []error
	packages.Visit(found, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			errs = append(errs, fmt.Errorf("%s: %w", system, e))
		}
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no package matches %s", pattern)
	}
	return errors.Join(err, errors.Join(errs...))
}
