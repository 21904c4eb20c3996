// Command consumerproof shows what a user gets with each published module, before
// it is released, and after:
//
//	go run ./scripts/consumerproof
//	go run ./scripts/consumerproof -published
//
// It makes a module proxy of files from the checkout. Then, for each module and in
// a throw-away module outside the checkout, it runs go get at the next version with
// the workspace off and no replacement, builds a program that imports every package
// of the module, runs the module's own examples with it, and looks at what was
// downloaded for it and linked into it: an atom brings core along and nothing else.
// With -published it takes the newest version that CHANGELOG.md dates, from where
// GOPROXY says modules come from; run it in the tree of that release.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

func main() {
	published := flag.Bool("published", false, "take the modules from GOPROXY, as they were released")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := repo.Root()
	if err == nil {
		err = run(ctx, root, *published, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "consumerproof:", err)
		os.Exit(1)
	}
}

// run proves all published modules of the tree in root, one after the other, and
// prints what each brings along. It fails if one of them did.
func run(ctx context.Context, root string, published bool, stdout io.Writer) (err error) {
	p, err := newProver(ctx, root, published)
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
	for _, m := range modules {
		found, err := p.prove(ctx, m)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed++
			fmt.Fprintf(stdout, "FAIL %s\n\t%s\n", m.Dir, strings.ReplaceAll(err.Error(), "\n", "\n\t"))
		default:
			fmt.Fprintf(stdout, "ok   %s %s\n", m.Dir, found)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s: %d of %d modules failed", p.version, failed, len(modules))
	}
	return nil
}

// String tells what comes along, our modules by their directories, and its weight.
func (p *proof) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "(%s) brings", size(p.size))
	if len(p.brought) == 0 {
		text.WriteString(" nothing else")
	}
	for _, direct := range []bool{true, false} {
		var these []string
		sum := int64(0)
		for _, b := range p.brought {
			if b.direct == direct {
				these = append(these, fmt.Sprintf("%s (%s)", strings.TrimPrefix(b.path, repo.Prefix), size(b.size)))
				sum += b.size
			}
		}
		switch n := len(these); {
		case n == 0:
		case direct:
			fmt.Fprintf(&text, " %d, %s: %s", n, size(sum), strings.Join(these, ", "))
		default:
			fmt.Fprintf(&text, "; these need %d more, %s: %s", n, size(sum), strings.Join(these, ", "))
		}
	}
	if len(p.named) > 0 {
		fmt.Fprintf(&text, "\n\tnamed in go.mod files, but not downloaded: %s", strings.Join(p.named, ", "))
	}
	return text.String()
}

// size returns a number of bytes for people.
func size(bytes int64) string {
	if bytes < 1_000_000 {
		return fmt.Sprintf("%.0f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
