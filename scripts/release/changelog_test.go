package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repotest"
)

// edited returns the versions that were released, and whose date or text is different now.
func edited(now, released []repo.Section) (versions []string) {
	for _, s := range released {
		if !slices.Contains(now, s) {
			versions = append(versions, s.Version)
		}
	}
	return versions
}

func TestEdited(t *testing.T) {
	parse := func(text string) []repo.Section {
		sections, err := repo.Changelog([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return sections
	}
	released := parse("## v0.2.0 - 2026-02-01\n\n- more\n\n## v0.1.0 - 2026-01-31\n\n- all\n")
	for text, want := range map[string]string{
		"## [Unreleased] - v0.3.0\n\n## v0.2.0 - 2026-02-01\n\n- more\n\n## v0.1.0 - 2026-01-31\n\n- all\n":           "",
		"## v0.2.0 - 2026-02-01\n\n- more\n\n## v0.1.0 - 2026-01-31\n\n- all of it\n":                                 "v0.1.0",
		"## [Unreleased] - v0.3.0\n\n- more\n\n## v0.2.0 - 2026-02-02\n\n- more\n\n## v0.1.0 - 2026-01-31\n\n- all\n": "v0.2.0",
		"## [Unreleased] - v0.3.0\n\n- more\n":                                                                        "v0.2.0 v0.1.0",
	} {
		if got := strings.Join(edited(parse(text), released), " "); got != want {
			t.Errorf("edited: got %q, want %q, for\n%s", got, want, text)
		}
	}
}

// What users have read about a release stays as it was at its tag.
func TestReleasedTextsStay(t *testing.T) {
	root, tree := repotest.Here(t)
	list, err := command.Output(t.Context(), root, nil, "git", "tag", "--list", "core/v*", "--sort=-v:refname")
	if err != nil {
		t.Skip("no history: ", err)
	}
	tags := strings.Fields(string(list))
	tags = slices.DeleteFunc(tags, func(tag string) bool { return strings.Contains(tag, "-") }) // candidates
	if len(tags) == 0 {
		t.Skip("nothing is released in this history")
	}
	now, err := repo.Changelog(tree.Text("CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := command.Output(t.Context(), root, nil, "git", "show", tags[0]+":CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	then, err := repo.Changelog(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := edited(now, then); len(got) > 0 {
		t.Errorf("CHANGELOG.md differs from %s for %v: write what is new under the first heading", tags[0], got)
	}
}

// Every place that names the licenses names the same ones.
func TestLicense(t *testing.T) {
	_, tree := repotest.Here(t)
	for _, name := range []string{"LICENSE", "README.md"} {
		if !strings.Contains(string(tree.Text(name)), policy.License) {
			t.Errorf("%s does not say %q", name, policy.License)
		}
	}
}
