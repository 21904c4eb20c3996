// Command new lays out a module that passes all checks:
//
//	go run ./scripts/new atom debounce
//
// The kind is atom or pattern. The module has one type that raises one signal, with its
// options, test, example and README. It gets a row in the table of modules, a line in the
// changelog and its names in module complete. Then replace its code.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

//go:embed module
var templates embed.FS

func main() {
	command.Main("new", []string{"KIND", "NAME"}, func(ctx context.Context, root string) error {
		plan := func(t *repo.Tree) (map[string][]byte, error) { return plan(t, flag.Arg(0), flag.Arg(1)) }
		if err := command.Update(root, os.Stdout, plan); err != nil {
			return err
		}
		for _, program := range []string{"./scripts/readme", "./scripts/complete"} {
			if _, err := command.Output(ctx, root, nil, "go", "run", program); err != nil {
				return err
			}
		}
		fmt.Println("next: go test ./scripts/arch, and CONTRIBUTING.md, \"How to add an atom\"")
		return nil
	})
}

var (
	wellNamed = regexp.MustCompile(`^[a-z][a-z0-9]+$`)
	news      = regexp.MustCompile(`(?m)^- `)
)

// plan returns the new files of a module of the kind, and the files that name the module.
func plan(t *repo.Tree, kind, name string) (map[string][]byte, error) {
	dir := path.Join(kind+"s", name)
	switch {
	case kind != "atom" && kind != "pattern":
		return nil, fmt.Errorf("the kind is %q, but must be atom or pattern", kind)
	case !wellNamed.MatchString(name):
		return nil, fmt.Errorf("the name is %q, but a package has a short name in lower case, without _", name)
	case t.Module(dir) != nil:
		return nil, fmt.Errorf("there is a module %s", dir)
	}
	version, err := t.NextVersion()
	if err != nil {
		return nil, err
	}
	words := strings.NewReplacer("DIR", dir, "NAME", name, "TYPE", strings.ToUpper(name[:1])+name[1:], "VERSION", version, "KIND", kind)
	files := map[string][]byte{dir + "/go.sum": t.Text("atoms/fixedwork/go.sum")}
	entries, err := templates.ReadDir("module")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := templates.ReadFile("module/" + entry.Name())
		if err != nil {
			return nil, err
		}
		file := strings.TrimSuffix(words.Replace(entry.Name()), ".txt")
		files[dir+"/"+file] = []byte(words.Replace(string(text)))
	}
	work, err := modfile.ParseWork("go.work", t.Text("go.work"), nil)
	if err != nil {
		return nil, err
	}
	if err := work.AddUse("./"+dir, ""); err != nil {
		return nil, err
	}
	work.SortBlocks()
	files["go.work"] = modfile.Format(work.Syntax)
	const page = "docs/modules.md"
	rows := regexp.MustCompile(`(?m)^\| \[.*\]\(\.\./`+kind+`s/.*\n`).FindAllIndex(t.Text(page), -1)
	files[page] = insert(t.Text(page), rows[len(rows)-1][1], words.Replace("| [`NAME`](../DIR) | a signal for each call of `Do` | a plain function is enough |\n"))
	files["CHANGELOG.md"] = insert(t.Text("CHANGELOG.md"), news.FindIndex(t.Text("CHANGELOG.md"))[0], words.Replace("- `NAME`: a new KIND.\n"))
	return files, nil
}

func insert(text []byte, at int, line string) []byte {
	return slices.Concat(text[:at], []byte(line), text[at:])
}
