// Package goproxy makes module proxies of files from trees.
package goproxy

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// Write writes the published modules of the tree into dir, as a module proxy that serves them
// at the given version; see "go help goproxy".
func Write(dir string, tree *repo.Tree, version string) error {
	for _, m := range policy.Published(tree) {
		if err := writeModule(dir, tree, m, version); err != nil {
			return fmt.Errorf("%s: %w", m.Dir, err)
		}
	}
	return nil
}

func writeModule(dir string, tree *repo.Tree, m *repo.Module, version string) error {
	escaped, err := module.EscapePath(m.Path())
	if err != nil {
		return err
	}
	at := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	err = command.WriteFiles(at, map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2000-01-01T00:00:00Z"}`, version),
		version + ".mod":  string(modfile.Format(m.Mod.Syntax)),
	})
	if err != nil {
		return err
	}
	// Like the go command, add the license of the repository to a module without one.
	texts := map[string][]byte{"LICENSE": tree.Text("LICENSE")}
	for _, name := range m.Files {
		texts[strings.TrimPrefix(name, m.Dir+"/")] = tree.Text(name)
	}
	files := filepath.Join(dir, "files", filepath.FromSlash(m.Dir))
	if err := command.WriteFiles(files, texts); err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := modzip.CreateFromDir(archive, module.Version{Path: m.Path(), Version: version}, files); err != nil {
		return err
	}
	return archive.Close()
}

// Isolated returns the environment of this process for the go command outside of the
// repository: without the workspace, and with module caches that can be removed.
func Isolated() []string {
	return append(os.Environ(),
		"GOWORK=off",
		"GOTOOLCHAIN=local",
		// -trimpath makes the results of the build cache independent of the directory.
		"GOFLAGS=-mod=mod -trimpath -modcacherw",
	)
}

// Environ returns an isolated environment in which modules of the repository come from the
// proxy in dir, and all others from the user's module cache. Settings of the user do not
// count, and nothing comes from the network. The user's cache is for reading: set GOMODCACHE.
func Environ(ctx context.Context, dir string) ([]string, error) {
	out, err := command.Output(ctx, "", append(os.Environ(), "GOWORK=off"), "go", "env", "GOCACHE", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	cache, modcache, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return append(Isolated(),
		"GOENV=off",
		"GOPROXY="+URL(dir)+","+URL(filepath.Join(modcache, "cache", "download")),
		"GOPRIVATE=",
		"GONOPROXY=",
		"GOSUMDB=off",
		"GOCACHE="+cache,
	), nil
}

// URL returns the URL of an absolute file name, even of a name like C:\proxy.
func URL(name string) string {
	name = filepath.ToSlash(name)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return (&url.URL{Scheme: "file", Path: name}).String()
}
