// Command binaries builds the demo for all systems with a download:
//
//	go run ./scripts/binaries -out DIR
//	go run ./scripts/binaries -reproduce linux/arm64,windows/amd64
//
// It writes the programs and a file SHA256SUMS, as sha256sum -c reads it, into DIR, and
// prints their sizes. The programs need no C library, and contain no path of the machine
// that built them. With -reproduce it builds each given system twice: from the checkout, and
// from a copy in another directory. It fails if the two programs differ.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/command"
	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// platforms are the systems with a download of the demo, as GOOS/GOARCH.
var platforms = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}

func main() {
	out := flag.String("out", "", "the directory for the programs")
	only := flag.String("reproduce", "", "systems to build twice, as GOOS/GOARCH,...")
	command.Main("binaries", nil, func(ctx context.Context, root string) error {
		switch {
		case (*out == "") == (*only == ""):
			return errors.New("give one of -out and -reproduce")
		case *out != "":
			return release(ctx, root, platforms, *out, os.Stdout)
		}
		return reproduce(ctx, root, strings.Split(*only, ","), os.Stdout)
	})
}

// program is a built file.
type program struct {
	name string
	size int64
	sum  string // SHA-256 in hex
}

// release builds the platforms into dir.
func release(ctx context.Context, root string, platforms []string, dir string, stdout io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	fmt.Fprintln(stdout, "| program | MB |\n|---|--:|")
	for _, platform := range platforms {
		p, err := build(ctx, root, dir, platform)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", p.sum, p.name)
		fmt.Fprintf(stdout, "| %s | %.1f |\n", p.name, float64(p.size)/1e6)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// reproduce builds each platform twice, from two directories, and compares.
func reproduce(ctx context.Context, root string, platforms []string, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "binaries-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	elsewhere := filepath.Join(dir, "another", "checkout")
	tree, err := repo.Load(os.DirFS(root))
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for _, name := range tree.Files {
		texts[name] = tree.Text(name)
	}
	if err := command.WriteFiles(elsewhere, texts); err != nil {
		return err
	}
	for _, platform := range platforms {
		first, err := build(ctx, root, filepath.Join(dir, "1"), platform)
		if err != nil {
			return err
		}
		second, err := build(ctx, elsewhere, filepath.Join(dir, "2"), platform)
		if err != nil {
			return err
		}
		if first != second {
			return fmt.Errorf("%s: two builds differ: %s and %s", platform, first.sum, second.sum)
		}
		fmt.Fprintf(stdout, "%s  %s\n", first.sum, first.name)
	}
	return nil
}

// build builds the demo of the checkout in root for a platform, into dir.
func build(ctx context.Context, root, dir, platform string) (program, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return program{}, fmt.Errorf("%q is not GOOS/GOARCH", platform)
	}
	p := program{name: "ephemeral-demo-" + goos + "-" + goarch}
	if goos == "windows" {
		p.name += ".exe"
	}
	file := filepath.Join(dir, p.name)
	env := append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOFLAGS=")
	_, err := command.Output(ctx, root, env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "./demo")
	if err != nil {
		return program{}, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return program{}, err
	}
	p.size = int64(len(text))
	p.sum = fmt.Sprintf("%x", sha256.Sum256(text))
	return p, nil
}
