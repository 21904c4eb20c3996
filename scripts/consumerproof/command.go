package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// typo is a program with a misspelt name of a signal, which ephemeral vet finds, and with a view
// that is dropped, which go vet finds with it.
const typo = `package main

import (
	"context"

	"` + repo.Prefix + `core"
	"` + repo.Prefix + `core/signals"
)

func main() {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.Raise("order.shipped")
	sink.Has("order.shiped")
	core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{})).Cost(2)
}
`

// install installs the commands of m like a user, and runs ephemeral vet on a program outside
// of the repository.
func (p *prover) install(ctx context.Context, m *repo.Module, dir string, env []string) error {
	bin := filepath.Join(dir, "bin")
	if _, err := command.Output(ctx, dir, append(env, "GOBIN="+bin), "go", "install", m.Path()+"@"+p.version); err != nil {
		return err
	}
	if m.Dir != "cmd/ephemeral" {
		return nil
	}
	program := filepath.Join(dir, "program")
	if err := command.WriteFiles(program, map[string]string{
		"go.mod":  fmt.Sprintf("module example.com/program\n\ngo %s\n", policy.GoVersion),
		"main.go": typo,
	}); err != nil {
		return err
	}
	if _, err := command.Output(ctx, program, env, "go", "get", repo.Prefix+"core@"+p.version); err != nil {
		return err
	}
	tool := filepath.Join(bin, path.Base(m.Dir))
	out, err := command.Output(ctx, program, env, "go", "vet", "-vettool="+tool, "./...")
	if err == nil || !strings.Contains(err.Error(), "Cost returns a view") {
		return fmt.Errorf("go vet did not find the dropped view with -vettool: %s%v", out, err)
	}
	out, err = command.Output(ctx, program, env, tool, "vet", "./...")
	if err == nil || !strings.Contains(err.Error(), `main.go:13:11: Has: nothing raises "order.shiped"; did you mean "order.shipped"`) {
		return fmt.Errorf("vet did not find the mistake in a program: %s%v", out, err)
	}
	return nil
}
