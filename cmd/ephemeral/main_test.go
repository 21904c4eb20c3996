package main

import (
	"strings"
	"testing"
)

func TestUsageListsAllCommands(t *testing.T) {
	var out, errOut strings.Builder
	if status := run(t.Context(), []string{"gone"}, nil, &out, &errOut); status != 2 {
		t.Errorf("status %d, want 2", status)
	}
	for _, c := range commands {
		if !strings.Contains(errOut.String(), "\n  "+c.name+" ") {
			t.Errorf("%s is not in %q", c.name, &errOut)
		}
	}
}
