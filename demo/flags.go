package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/filepipeline"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
)

// config is the command line.
type config struct {
	in, out string
	strict  bool
	drain   *time.Duration
	options filepipeline.Options
}

func flags(cfg *config) *flag.FlagSet {
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run prints errors and usage itself
	fs.StringVar(&cfg.in, "in", "", "read every file below `DIR` (default $(go env GOROOT)/src/image)")
	fs.StringVar(&cfg.out, "out", "", "write thumbs/ and metadata.jsonl to `DIR`, which must not be inside -in;\n"+
		"what an earlier run left there is replaced (default a fresh temporary directory)")
	fs.BoolVar(&cfg.strict, "strict", false, "exit with status 1 if anything failed")
	fs.IntVar(&cfg.options.Readers, "readers", 0, "read `N` files at once (default 8)")
	fs.IntVar(&cfg.options.Thumbnailers, "thumbnailers", 0, "decode and scale `N` images at once (default one per processor)")
	fs.Int64Var(&cfg.options.Limits.MaxPixels, "max-pixels", 0, "refuse an image that declares more than `N` pixels (default 50000000)")
	fs.Int64Var(&cfg.options.Limits.MaxBytes, "max-bytes", 0, "refuse an image of more than `N` bytes (default 67108864)")
	cfg.drain = program.DrainFlag(fs)
	return fs
}

// parse reads the command line. A given limit must be positive: only in the library, zero means the default.
func parse(ctx context.Context, args []string) (config, error) {
	var cfg config
	fs := flags(&cfg)
	if err := fs.Parse(args); err != nil {
		return cfg, err
	}
	if fs.NArg() > 0 {
		return cfg, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	var errs []error
	fs.Visit(func(f *flag.Flag) {
		switch v := f.Value.(flag.Getter).Get().(type) {
		case int:
			if v <= 0 {
				errs = append(errs, fmt.Errorf("-%s must be positive, not %d", f.Name, v))
			}
		case int64:
			if v <= 0 {
				errs = append(errs, fmt.Errorf("-%s must be positive, not %d", f.Name, v))
			}
		case string:
			if v == "" {
				errs = append(errs, fmt.Errorf("-%s must not be empty", f.Name))
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		return cfg, err
	}
	if cfg.in == "" {
		var err error
		if cfg.in, err = goImages(ctx); err != nil {
			return cfg, fmt.Errorf("no -in, and no default for it: %w", err)
		}
	}
	return cfg, nil
}

// goImages returns the directory of the images that Go's own tests use. It asks the go command, because a binary
// does not know GOROOT: it may run on another machine, or be built with -trimpath.
func goImages(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src", "image"), nil
}

func usage() string {
	var text strings.Builder
	text.WriteString("usage: demo [flags]\n")
	for _, c := range commands() {
		fmt.Fprintf(&text, "       demo %s %s\n", c.name, c.args)
	}
	text.WriteString("\nMakes thumbnails, metadata and a list of duplicates of all images below a directory.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&text, "%-10s%s\n", c.name, c.does)
	}
	text.WriteString("\nFlags; demo COMMAND -h prints those of a command:\n")
	fs := flags(&config{})
	fs.SetOutput(&text)
	fs.PrintDefaults()
	text.WriteString("\nExit status: 0 finished, 1 with -strict something failed,\n2 bad usage or a directory that does not serve, 130 interrupted.\nThe second Ctrl-C ends the process at once.\n")
	return text.String()
}
