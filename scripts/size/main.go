// Command size prints how large the packages of the repository are:
//
//	go run ./scripts/size         # prints a table
//	go run ./scripts/size -write  # lowers the ceilings to what is measured, and adds new packages
//
// Lines are lines of code without blank lines and comments. They are only shown: a limit of
// lines makes code dense, not simple. Four other figures have a ceiling for each package, in
// ceilings.txt: exported names (types, functions, methods, fields, constants and variables),
// files, the cyclomatic complexity of the most complex function, and the largest number of
// parameters. The test of this package fails above a ceiling. To raise one, edit the file and
// say why in the commit.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

const ceilingsFile = "scripts/size/ceilings.txt"

func main() {
	lower := flag.Bool("write", false, "lower the ceilings in "+ceilingsFile+" to what is measured, and add new packages")
	command.Main("size", nil, func(_ context.Context, root string) error {
		tree, err := repo.Load(os.DirFS(root))
		if err != nil {
			return err
		}
		all := measure(tree)
		if *lower {
			return os.WriteFile(filepath.Join(root, ceilingsFile), []byte(lowered(all, parse(tree.Text(ceilingsFile)))), 0o644)
		}
		return write(os.Stdout, all)
	})
}

// write prints a line for each package, and one for each group and for all.
func write(out io.Writer, all []size) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "code\ttests\tnames\tfiles\tcomplexity\tparameters\t  package")
	for _, s := range append(all, sums(all)...) {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t  %s\n", s.code, s.tests, s.counts[names], s.counts[files], s.counts[complexity], s.counts[parameters], s.dir)
	}
	return w.Flush()
}

// sums adds up the packages below core, atoms and so on, and all. Names count only where users
// can import them.
func sums(all []size) []size {
	totals := []size{{dir: "core/..."}, {dir: "atoms/..."}, {dir: "patterns/..."}, {dir: "cmd/..."}, {dir: "scripts/..."}, {dir: "..."}}
	for i := range totals {
		t := &totals[i]
		for _, s := range all {
			if !strings.HasPrefix(s.dir+"/", strings.TrimSuffix(t.dir, "...")) {
				continue
			}
			t.code += s.code
			t.tests += s.tests
			t.counts[files] += s.counts[files]
			t.counts[complexity] = max(t.counts[complexity], s.counts[complexity])
			t.counts[parameters] = max(t.counts[parameters], s.counts[parameters])
			if published(s.dir) {
				t.counts[names] += s.counts[names]
			}
		}
	}
	return totals
}
