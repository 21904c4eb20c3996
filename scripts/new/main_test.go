package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/scripts/arch"
	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repotest"
)

// A new module keeps all rules and passes its tests, in a copy of the checkout.
func TestNewModule(t *testing.T) {
	_, tree := repotest.Here(t)
	for _, args := range [][3]string{{"molecule", "debounce", "must be atom or pattern"}, {"atom", "De_bounce", "short name in lower case"}, {"atom", "retry", "there is a module"}} {
		if _, err := plan(tree, args[0], args[1]); err == nil || !strings.Contains(err.Error(), args[2]) {
			t.Errorf("%v: got %v", args, err)
		}
	}
	if os.Getenv("EPHEMERAL_LONG") == "" {
		return
	}
	dir, texts := t.TempDir(), map[string][]byte{}
	for _, name := range tree.Files {
		texts[name] = tree.Text(name)
	}
	if err := command.WriteFiles(dir, texts); err != nil {
		t.Fatal(err)
	}
	err := command.Update(dir, io.Discard, func(tree *repo.Tree) (map[string][]byte, error) { return plan(tree, "pattern", "debounce") })
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "GOFLAGS=-trimpath")
	for _, args := range [][]string{{"run", "./scripts/readme"}, {"run", "./scripts/complete"}, {"test", "./patterns/debounce"}} {
		if _, err := command.Output(context.Background(), dir, env, "go", args...); err != nil {
			t.Fatal(err)
		}
	}
	if tree, err = repo.Load(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, rule := range arch.Rules {
		for _, v := range rule.Violations(tree, policy.Exceptions) {
			t.Errorf("%s: %s", rule.Name, v)
		}
	}
}
