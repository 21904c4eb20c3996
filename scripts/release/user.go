package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/goproxy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// program imports package complete, and prints the modules of the repository that it links,
// with their versions.
const program = `package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	_ "` + repo.Prefix + `complete"
)

func main() {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "` + repo.Prefix + `") {
			fmt.Println(m.Path, m.Version)
		}
	}
}
`

// user is somebody with a program outside of the repository.
type user struct {
	dir, bin string
	env      []string
}

// newUser returns a user who works in dir and takes the modules of the repository from the
// proxy.
func newUser(ctx context.Context, dir, proxy string) (*user, error) {
	u := &user{dir: filepath.Join(dir, "user"), bin: filepath.Join(dir, "bin")}
	env, err := goproxy.Environ(ctx, proxy)
	if err != nil {
		return nil, err
	}
	u.env = append(env, "GOMODCACHE="+filepath.Join(dir, "modcache"), "GOBIN="+u.bin)
	return u, command.WriteFiles(u.dir, map[string]string{
		"go.mod":  fmt.Sprintf("module example.com/user\n\ngo %s\n", policy.GoVersion),
		"main.go": program,
	})
}

// get runs go get, and then the program. It fails unless the program links the modules of
// the repository at the version, all of them.
func (u *user) get(ctx context.Context, version string, out io.Writer, args ...string) error {
	if _, err := command.Output(ctx, u.dir, u.env, "go", append([]string{"get"}, args...)...); err != nil {
		return err
	}
	text, err := command.Output(ctx, u.dir, u.env, "go", "run", "-ldflags=-s -w", ".")
	if err != nil {
		return err
	}
	linked := strings.Count(string(text), "\n")
	if linked == 0 || strings.Count(string(text), " "+version+"\n") != linked {
		return fmt.Errorf("after go get %s, want all modules at %s:\n%s", strings.Join(args, " "), version, text)
	}
	fmt.Fprintf(out, "go get %s: a program outside runs with %s, and links %d modules\n", strings.Join(args, " "), version, linked)
	return nil
}

// install installs the command ephemeral, which then checks the program.
func (u *user) install(ctx context.Context, m *repo.Module, version string, out io.Writer) error {
	at := m.Path() + "@" + version
	if _, err := command.Output(ctx, u.dir, u.env, "go", "install", at); err != nil {
		return err
	}
	if _, err := command.Output(ctx, u.dir, u.env, filepath.Join(u.bin, "ephemeral"), "vet", "./..."); err != nil {
		return err
	}
	fmt.Fprintf(out, "go install %s: it has checked the program\n", at)
	return nil
}
