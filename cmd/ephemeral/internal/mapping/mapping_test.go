package mapping

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// inRepository changes to the root of the repository, and skips the test outside of it.
func inRepository(t *testing.T) {
	t.Helper()
	t.Chdir("../../../..")
	if _, err := os.Stat("go.work"); err != nil {
		t.Skip("the programs to draw are in the repository")
	}
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut strings.Builder
	if status := Run(t.Context(), args, nil, &out, &errOut); status != 0 {
		t.Fatalf("status %d: %s", status, &errOut)
	}
	return out.String()
}

// The map in the guide is what the command there prints.
func TestGuide(t *testing.T) {
	inRepository(t)
	guide, err := os.ReadFile("docs/guide/09-seeing-it.md")
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, "-package", "*/filepipeline", "./demo/filepipeline", "./demo/menu")
	if !strings.Contains(string(guide), "\n```mermaid\n"+got+"```\n") {
		t.Errorf("the guide does not show\n%s", got)
	}
}

func TestJSON(t *testing.T) {
	inRepository(t)
	const planted = "./cmd/ephemeral/internal/check/testdata/planted"
	var got []Signal
	if err := json.Unmarshal([]byte(run(t, "-json", "-signal", "*.shipped", planted)), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Name != "order.shipped" || len(got[0].Raised) != 1 {
		t.Fatalf("got %+v, want order.shipped alone", got)
	}
	if at := got[0].Raised[0]; at.API != "RaiseKey" || at.File != planted[2:]+"/main.go" || at.Line == 0 || !strings.HasSuffix(at.Package, "/planted") {
		t.Errorf("raised at %+v", at)
	}
	var patterns []string
	for _, p := range got[0].Read {
		patterns = append(patterns, p.API+" "+p.Pattern)
	}
	if got := strings.Join(patterns, ", "); got != "Subscribe order.*, a comparison with the name of a signal order.shipped, Matches order.*" {
		t.Errorf("read by %s", got)
	}
}
