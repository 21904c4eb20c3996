package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/policy"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// systems are the pairs GOOS/GOARCH that a bill of materials covers.
var systems = []string{"linux/amd64", "darwin/arm64", "windows/amd64"}

// bom is a software bill of materials in the format CycloneDX 1.6, as far as it is used here.
type bom struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Licenses   []license  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type license struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitempty"`
}

// writeBOMs writes a bill of materials of each published module of the tree in root into
// dir, with names like atoms-retry.cdx.json, and returns how many. It lists the modules that
// a program with the module links on one of the systems: neither those of tests, nor the
// standard library, whose version the program chooses. Two runs write the same. The go
// command may download libraries.
func writeBOMs(ctx context.Context, root, dir string) (int, error) {
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return 0, err
	}
	version, err := tree.NextVersion()
	if err != nil {
		return 0, err
	}
	texts := map[string][]byte{}
	for _, m := range policy.Published(tree) {
		b, err := newBOM(ctx, root, m, version)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.Dir, err)
		}
		text, err := json.MarshalIndent(b, "", "  ")
		if err != nil {
			return 0, err
		}
		texts[strings.ReplaceAll(m.Dir, "/", "-")+".cdx.json"] = append(text, '\n')
	}
	return len(texts), command.WriteFiles(dir, texts)
}

// newBOM lists what the packages of the module import, directly or not.
func newBOM(ctx context.Context, root string, m *repo.Module, version string) (*bom, error) {
	found := map[string]component{}        // by module path
	uses := map[string]map[string]string{} // purls by module path, for each module
	for i, system := range systems {
		if i > 0 && !libraries(m, found) {
			break // our modules import each other on all systems alike
		}
		goos, goarch, _ := strings.Cut(system, "/")
		env := append(os.Environ(), "GOWORK=off", "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
		out, err := command.Output(ctx, filepath.Join(root, filepath.FromSlash(m.Dir)), env, "go", "list", "-deps", "-json=ImportPath,Imports,Module", "./...")
		if err != nil {
			return nil, err
		}
		owners := map[string]string{} // module paths by import path
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var pkg struct {
				ImportPath string
				Imports    []string
				Module     *struct{ Path, Version, Sum string }
			}
			if err := d.Decode(&pkg); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if pkg.Module == nil {
				continue // a package of the standard library
			}
			from := pkg.Module.Path
			owners[pkg.ImportPath] = from
			if uses[from] == nil {
				uses[from] = map[string]string{}
			}
			if from == m.Path() {
				pkg.Module.Version = version
			}
			found[from] = newComponent(from, pkg.Module.Version, pkg.Module.Sum)
			for _, imported := range pkg.Imports { // they come before this package
				if to := owners[imported]; to != "" && to != from {
					uses[from][to] = found[to].PURL
				}
			}
		}
	}
	b := &bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Components: []component{}}
	b.Metadata.Component = found[m.Path()]
	if policy.KindOf(m.Dir).Tool {
		b.Metadata.Component.Type = "application"
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if path != m.Path() {
			b.Components = append(b.Components, found[path])
		}
		b.Dependencies = append(b.Dependencies, dependency{found[path].PURL, slices.Sorted(maps.Values(uses[path]))})
	}
	return b, nil
}

// libraries reports whether the module may link more than modules of the repository.
func libraries(m *repo.Module, found map[string]component) bool {
	for path := range found {
		if !strings.HasPrefix(path, repo.Prefix) {
			return true
		}
	}
	return len(policy.LibrariesOf(m.Dir)) > 0
}

// newComponent describes a module; sum is its line in go.sum, if it has one.
func newComponent(path, version, sum string) component {
	purl := "pkg:golang/" + path + "@" + url.QueryEscape(version)
	c := component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
	if strings.HasPrefix(path, repo.Prefix) {
		c.Licenses = []license{{policy.License}}
	}
	if sum != "" {
		c.Properties = []property{{"go.sum", sum}}
	}
	return c
}
