// Command consumerproof shows what a user gets with each published module, before and after
// its release:
//
//	go run ./scripts/consumerproof
//	go run ./scripts/consumerproof -published
//
// It makes a module proxy of files from the checkout. Then, for each module, it
// makes a temporary module outside the checkout. There it runs go get at the next
// version, with the workspace off and no replacement. It builds a program that
// imports every package of the module, and runs the module's own examples. Then it
// checks which modules were downloaded and linked: an atom brings only core along.
// With -published it takes the newest version with a date in CHANGELOG.md from
// GOPROXY; run it in the tree of that release.
//
// Replacements and the workspace hide the mistakes that only a release shows: a requirement that
// is missing, a package that is there because of a neighbour, an example that needs another test
// file. A tag is for ever, so this happens before. It has a module cache of its own, because what
// the tree holds today must not be found tomorrow under a released version. Rejected: pre-release
// tags for each attempt, because they stay. To check go.mod files only: the go command decides
// what they mean. A proxy over HTTP: the go command reads file:// as well.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

func main() {
	published := flag.Bool("published", false, "take the modules from GOPROXY, as they were released")
	command.Main("consumerproof", nil, func(ctx context.Context, root string) error { return run(ctx, root, *published, os.Stdout) })
}

// run proves all published modules of the tree in root, one after the other, and prints
// what each adds to a program. It fails if one of them fails.
func run(ctx context.Context, root string, published bool, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "consumerproof-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := newProver(ctx, dir, root, published)
	if err != nil {
		return err
	}
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

// String lists what comes along, with the sizes of archives. Modules of the repository have
// the names of their directories.
func (p *proof) String() string {
	text := fmt.Sprintf("(%s) brings", size(p.size))
	if len(p.brought) == 0 {
		return text + " nothing else"
	}
	var all []string
	sum := int64(0)
	for _, b := range p.brought {
		all = append(all, fmt.Sprintf("%s (%s)", strings.TrimPrefix(b.path, repo.Prefix), size(b.size)))
		sum += b.size
	}
	return fmt.Sprintf("%s %d, %s: %s", text, len(all), size(sum), strings.Join(all, ", "))
}

// size returns a number of bytes for people.
func size(bytes int64) string {
	if bytes < 1_000_000 {
		return fmt.Sprintf("%.0f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
