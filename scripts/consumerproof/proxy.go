package main

import (
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// writeProxy writes the published modules of the tree into dir, as a module proxy
// that serves them at the given version; see "go help goproxy".
func writeProxy(dir string, tree *repo.Tree, version string) error {
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
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2000-01-01T00:00:00Z"}`, version),
		version + ".mod":  string(modfile.Format(m.Mod.Syntax)),
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := modzip.Create(archive, module.Version{Path: m.Path(), Version: version}, archived(tree, m)); err != nil {
		return err
	}
	return archive.Close()
}

// archived returns the files of the module as they go into its archive. A module
// without a license gets the one of the repository, as from the go command.
func archived(tree *repo.Tree, m *repo.Module) []modzip.File {
	var files []modzip.File
	licensed := false
	for _, name := range m.Files {
		inside := strings.TrimPrefix(name, m.Dir+"/")
		licensed = licensed || inside == "LICENSE"
		files = append(files, file{tree.FS, name, inside})
	}
	if _, err := fs.Stat(tree.FS, "LICENSE"); err == nil && !licensed {
		files = append(files, file{tree.FS, "LICENSE", "LICENSE"})
	}
	return files
}

// file is a file of the tree on its way into an archive.
type file struct {
	fsys         fs.FS
	name, inside string // where it is, and where it goes to
}

func (f file) Path() string                 { return f.inside }
func (f file) Lstat() (fs.FileInfo, error)  { return fs.Stat(f.fsys, f.name) }
func (f file) Open() (io.ReadCloser, error) { return f.fsys.Open(f.name) }

// fileURL returns the URL of an absolute file name, also of one like C:\proxy.
func fileURL(name string) string {
	name = filepath.ToSlash(name)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return (&url.URL{Scheme: "file", Path: name}).String()
}
