// Command consumerproof shows what a user gets with each published module, before
// it is released:
//
//	go run ./scripts/consumerproof
//
// It makes a module proxy of files from the checkout. Then, for each module and in
// a throw-away module outside the checkout, it runs go get at the next version with
// the workspace off and no replacement, builds a program that imports every package
// of the module, runs the module's own examples with it, and looks at what was
// linked into it: an atom brings core along and nothing else.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := repo.Root()
	if err == nil {
		err = run(ctx, root, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "consumerproof:", err)
		os.Exit(1)
	}
}

// run proves all published modules of the tree in root, one after the other, and
// prints what each brings along. It fails if one of them did.
func run(ctx context.Context, root string, stdout io.Writer) (err error) {
	p, err := newProver(ctx, root)
	if err != nil {
		return err
	}
	defer func() {
		if closing := p.close(); err == nil {
			err = closing
		}
	}()
	modules := policy.Published(p.tree)
	failed := 0
	short := strings.NewReplacer(repo.Prefix, "")
	for _, m := range modules {
		brought, err := p.prove(ctx, m)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed++
			fmt.Fprintf(stdout, "FAIL %s\n\t%s\n", m.Dir, strings.ReplaceAll(err.Error(), "\n", "\n\t"))
		case len(brought) == 0:
			fmt.Fprintf(stdout, "ok   %s brings nothing else\n", m.Dir)
		default:
			fmt.Fprintf(stdout, "ok   %s brings %s\n", m.Dir, short.Replace(strings.Join(brought, ", ")))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d modules failed", failed, len(modules))
	}
	return nil
}
