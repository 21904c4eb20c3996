package arch

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// The workflows run every step of .ci/run, so a pull request is tested as a submission is. They use
// actions at a commit, which nobody can move, and may only read unless a job says otherwise.
func TestWorkflows(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	run, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no workflows:", err)
	}
	ran := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		for _, names := range regexp.MustCompile(`run: \.ci/run((?: '[^']+')+)`).FindAllStringSubmatch(string(text), -1) {
			for _, step := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(names[1], -1) {
				ran[step[1]] = true
			}
		}
		for _, use := range regexp.MustCompile(`uses: .*`).FindAllString(string(text), -1) {
			if !regexp.MustCompile(`^uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`).MatchString(use) {
				t.Errorf("%s: %q, want a commit, and its version in a comment", name, use)
			}
		}
		if !strings.Contains(string(text), "\npermissions:\n  contents: read\n\n") {
			t.Errorf("%s: want permissions for all jobs, contents: read and no more", name)
		}
	}
	steps := regexp.MustCompile(`(?m)^\s*step ('[^']+') `).FindAllStringSubmatch(string(run), -1)
	if len(steps) < 10 {
		t.Fatalf("found %d steps in .ci/run", len(steps))
	}
	for _, step := range steps {
		name := strings.Trim(step[1], "'")
		if !ran[name] {
			t.Errorf("step %q of .ci/run is in no workflow; they have %q", name, slices.Sorted(maps.Keys(ran)))
		}
		delete(ran, name)
	}
	for name := range ran {
		t.Errorf("a workflow runs step %q, which .ci/run does not have", name)
	}
}
