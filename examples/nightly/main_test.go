package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Both processes hand over the night. It is added once, and its report is written once.
func TestOneReport(t *testing.T) {
	var out strings.Builder
	if err := show(&out); err != nil {
		t.Fatal(err)
	}
	nights := regexp.MustCompile(`sales@[^,\s]+`).FindAllString(out.String(), -1)
	last := nights[len(nights)-1]
	for _, line := range []string{"handed over " + last + ", added: true\n", "handed over " + last + ", added: false\n", "wrote " + last + "\n"} {
		if strings.Count(out.String(), line) != 1 {
			t.Errorf("not once: %s in\n%s", line, &out)
		}
	}
}
