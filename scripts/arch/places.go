package arch

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// private matches the hosts of package registries, and absolute paths that only
// exist on some machine. The patterns are written so that they do not match
// themselves.
var private = regexp.MustCompile(`(?i)` +
	`\b(?:proxy|sum|index)[.]golang[.]org\b` +
	`|\bgoproxy[.](?:io|cn)\b` +
	`|\b(?:registry[.]npmjs|deb[.]debian|security[.]debian|archive[.]ubuntu)[.]\w+` +
	`|(?:^|[^\w./~*-])/+(?:work|root|home|Users)/`)

// privatePlaces checks that no text of the repository names such a place.
func privatePlaces(t *repo.Tree) []Violation {
	var vs []Violation
	for _, name := range t.Files {
		data, err := fs.ReadFile(t.FS, name)
		if err != nil {
			vs = append(vs, Violation{name, err.Error(), "make it readable"})
			continue
		}
		if bytes.IndexByte(data, 0) >= 0 {
			continue // not a text
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			if found := private.Find(line); found != nil {
				vs = append(vs, Violation{fmt.Sprintf("%s:%d", name, i+1), fmt.Sprintf("names %q", found), "leave the place to the user's settings, or make the path relative"})
			}
		}
	}
	return vs
}
