package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"golang.org/x/mod/semver"
)

var unreleased = regexp.MustCompile(`(?m)^## \[Unreleased\] - (\S+)\s*$`)

// NextVersion returns the version that the heading of the unreleased changes in
// CHANGELOG.md names:
//
//	## [Unreleased] - v0.1.0
//
// It is the one place where the version is decided. All modules of the repository
// require each other at this version, and are released together with it.
func NextVersion(fsys fs.FS) (string, error) {
	data, err := fs.ReadFile(fsys, "CHANGELOG.md")
	if err != nil {
		return "", err
	}
	found := unreleased.FindAllSubmatch(data, -1)
	if len(found) != 1 {
		return "", errors.New(`CHANGELOG.md: want exactly one heading like "## [Unreleased] - v0.1.0"`)
	}
	v := string(found[0][1])
	if !semver.IsValid(v) || semver.Canonical(v) != v {
		return "", fmt.Errorf("CHANGELOG.md: %q is not a version like v0.1.0", v)
	}
	return v, nil
}
