package guide_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// The table of page 8 has each option of a coordinator, its lanes and its classes. What it calls the
// same is there in a durable queue, under this name.
func TestTableOfDurableOptions(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/08-schedules-storage-and-durable-work.md")
	if err != nil {
		t.Fatal(err)
	}
	durables := fields("", durable.Options{}, "Lane.", core.Lane{}, "Class.", durable.Class{})
	_, table, _ := strings.Cut(string(page), "| option of core |")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			continue
		}
		for _, name := range regexp.MustCompile("`([A-Za-z.]+)`").FindAllStringSubmatch(cells[1], -1) {
			listed = append(listed, name[1])
			there, answer := slices.Contains(durables, name[1]), strings.TrimSpace(cells[2])
			switch {
			case strings.HasPrefix(answer, "same"), strings.HasPrefix(answer, "other"):
				if !there {
					t.Errorf("%s is %q, but a durable queue has no such option", name[1], answer)
				}
			case !strings.HasPrefix(answer, "not there"):
				t.Errorf("%s: expected same, other or not there, got %q", name[1], answer)
			case there && !strings.HasPrefix(name[1], "Lane."): // lanes have the type of core
				t.Errorf("%s is %q, but a durable queue has this option", name[1], answer)
			}
		}
	}
	want := fields("", core.Options{}, "Lane.", core.Lane{}, "Class.", core.Class{})
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("the table has\n%q, want\n%q", listed, want)
	}
}

// fields returns the names of the fields of structs, each with its prefix.
func fields(prefixesAndStructs ...any) (names []string) {
	for i := 0; i < len(prefixesAndStructs); i += 2 {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(prefixesAndStructs[i+1])) {
			if f.IsExported() {
				names = append(names, prefixesAndStructs[i].(string)+f.Name)
			}
		}
	}
	return names
}
