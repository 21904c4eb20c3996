package repo

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// Section is a section of CHANGELOG.md: a version, and its changes.
type Section struct {
	Version string
	Date    string // date of the release, like 2026-01-31; empty before the release
	Text    string // without the heading and the blank lines around it
}

// heading matches the heading of a section, before the release and after it.
var heading = regexp.MustCompile(`^## (?:\[Unreleased\] - (\S+)|(\S+) - (\d{4}-\d\d-\d\d))$`)

// Changelog returns the sections of the text of CHANGELOG.md, newest first. It fails unless
// there is one, the versions descend, and the first alone may be unreleased.
func Changelog(text []byte) ([]Section, error) {
	var sections []Section
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, " \t\r\n")
		n := len(sections)
		if !strings.HasPrefix(line, "## ") {
			if n > 0 {
				sections[n-1].Text += line + "\n"
			}
			continue
		}
		found := heading.FindStringSubmatch(line)
		if found == nil || found[1] != "" && n > 0 {
			return nil, fmt.Errorf("CHANGELOG.md: %q: want exactly one heading like %q, and below it only such as %q",
				line, "## [Unreleased] - v0.2.0", "## v0.1.0 - 2026-01-31")
		}
		version := found[1] + found[2]
		if !semver.IsValid(version) || semver.Canonical(version) != version {
			return nil, fmt.Errorf("CHANGELOG.md: %q is not a version like v0.1.0", version)
		}
		if n > 0 && semver.Compare(version, sections[n-1].Version) >= 0 {
			return nil, fmt.Errorf("CHANGELOG.md: %s stands below %s", version, sections[n-1].Version)
		}
		sections = append(sections, Section{Version: version, Date: found[3]})
	}
	if len(sections) == 0 {
		return nil, errors.New(`CHANGELOG.md: want exactly one heading like "## [Unreleased] - v0.1.0"`)
	}
	for i := range sections {
		sections[i].Text = strings.TrimSpace(sections[i].Text)
	}
	return sections, nil
}

// NextVersion returns the version that the first heading in CHANGELOG.md names:
//
//	## [Unreleased] - v0.1.0
//
// In the commit of the release that heading has a date. Only this heading decides the
// version. All modules of the repository require each other at this version, and are
// released together.
func (t *Tree) NextVersion() (string, error) {
	sections, err := Changelog(t.Text("CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	return sections[0].Version, nil
}
