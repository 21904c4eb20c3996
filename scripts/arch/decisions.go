package arch

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

var decision = regexp.MustCompile(`^([0-9]{4})-[a-z0-9]+(-[a-z0-9]+)*\.md$`)

// decisions checks that the records in docs/adr can be cited by number.
func decisions(t *repo.Tree) []Violation {
	var vs []Violation
	taken := map[string]string{} // by number
	for _, name := range t.Files {
		if path.Dir(name) != "docs/adr" {
			continue
		}
		found := decision.FindStringSubmatch(path.Base(name))
		if found == nil {
			vs = append(vs, Violation{name, "is not called like a decision", "docs/adr/NNNN-title-in-lower-case.md"})
			continue
		}
		if other := taken[found[1]]; other != "" {
			vs = append(vs, Violation{name, "has the number of " + other, "give the younger one the next free number"})
		}
		taken[found[1]] = name
		number, _ := strconv.Atoi(found[1]) // four digits
		data, err := fs.ReadFile(t.FS, name)
		if err != nil {
			vs = append(vs, Violation{name, err.Error(), "make it readable"})
		} else if heading := fmt.Sprintf("# %d. ", number); !bytes.HasPrefix(data, []byte(heading)) {
			vs = append(vs, Violation{name, "does not begin with its number", fmt.Sprintf("begin it with %q and the title", heading)})
		}
	}
	return vs
}
