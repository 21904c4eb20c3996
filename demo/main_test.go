package main

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/demo/scenario"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/demo/internal/programtest"
)

func TestMain(m *testing.M) {
	switch os.Getenv(programtest.Env) {
	case "":
		os.Exit(m.Run())
	case "stuck":
		scenarios = []scenario.Scenario{stuck}
	default:
		scenarios = []scenario.Scenario{quick, broken}
	}
	main()
}

// The scenarios of the tests.
var (
	quick = scenario.Scenario{Name: "quick", Title: "Ends at once", Run: func(_ context.Context, s *scenario.Screen) error {
		s.Sink.Raise("quick.done")
		s.Takeaway("%d signal", s.Sink.Count("quick.*"))
		return nil
	}}
	broken = scenario.Scenario{Name: "broken", Title: "Panics", Run: func(context.Context, *scenario.Screen) error { panic("out of order") }}
	stuck  = scenario.Scenario{Name: "stuck", Title: "Never ends", Run: func(ctx context.Context, s *scenario.Screen) error {
		s.Printf("running")
		<-ctx.Done()
		s.Printf("stopping: %v", context.Cause(ctx))
		select {}
	}}
)

func TestScenarioCommand(t *testing.T) {
	defer func(all []scenario.Scenario) { scenarios = all }(scenarios)
	scenarios = []scenario.Scenario{quick, broken}
	for _, test := range []struct {
		args   string
		status int
		says   []string
	}{
		{"scenario quick", 0, []string{"== quick: Ends at once\n=> 1 signal\n", "SCENARIO   SECONDS", "total"}},
		{"scenario all", 1, []string{"=> 1 signal\n", "== broken: Panics\nfailed: core: operation panicked: out of order", "main_test.go", "broken      0.0", "failed\n"}},
		{"scenario list", 0, []string{"quick    Ends at once\nbroken   Panics\n"}},
		{"menu", 0, []string{"quick    Ends at once\n", "demo scenario NAME"}},
		{"help", 0, []string{"usage: demo", "demo serve", "demo scenario", "demo menu", "demo durable", "demo mesh"}},
		{"scenario", 2, []string{"there are quick, broken, all, list"}},
		{"scenario quick broken", 2, []string{"there are quick, broken, all, list"}},
		{"scenario slow", 2, []string{`"slow"`, "there are quick, broken, all, list"}},
		{"scenario -h", 0, []string{"-drain"}},
		{"what", 2, []string{`"what"`, "there are serve, scenario, menu, durable, mesh, help"}},
	} {
		t.Run(test.args, func(t *testing.T) {
			status, stdout, stderr := programtest.Call(t, run, strings.Fields(test.args)...)
			for _, says := range test.says {
				if status != test.status || !strings.Contains(stdout+stderr, says) || strings.Contains(stdout, "\x1b") {
					t.Errorf("status %d, want %d and %q\nstdout: %s\nstderr: %s", status, test.status, says, stdout, stderr)
				}
			}
			coretest.Check(t, status != program.Unusable || stdout == "", "an error on stdout: %s", stdout)
		})
	}
}

// images makes a directory with one good image and one truncated image.
func images(t *testing.T) (good, torn string) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 300, 200))); err != nil {
		t.Fatal(err)
	}
	good, torn = t.TempDir(), t.TempDir()
	write(t, b.Bytes(), good, "good.png")
	write(t, b.Bytes()[:60], torn, "torn.png")
	return good, torn
}

func write(t *testing.T, data []byte, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestExitStatus(t *testing.T) {
	good, torn := images(t)
	file := filepath.Join(good, "good.png")
	for _, test := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"good", []string{"-in", good}, 0, "thumbnails   1"},
		{"failures are part of the job", []string{"-in", torn}, 0, "torn.png"},
		{"strict and good", []string{"-in", good, "-strict"}, 0, "thumbnails   1"},
		{"strict with failures", []string{"-in", torn, "-strict"}, 1, "torn.png"},
		{"strict by a limit", []string{"-in", good, "-strict", "-max-pixels", "59999"}, 1, "the limit is 59999"},
		{"within a limit", []string{"-in", good, "-strict", "-max-pixels", "60000"}, 0, ""},
		{"bytes by a limit", []string{"-in", good, "-strict", "-max-bytes", "50"}, 1, "the limit is 50"},
		{"limits", []string{"-in", good, "-readers", "1", "-thumbnailers", "1"}, 0, "thumbnails   1"},
		{"help", []string{"-h"}, 0, "usage: demo"},

		{"unknown flag", []string{"-what"}, 2, "not defined: -what"},
		{"unknown argument", []string{"-in", good, "what"}, 2, `unexpected argument "what"`},
		{"no number", []string{"-readers", "x"}, 2, "invalid value"},
		{"no readers", []string{"-readers", "0"}, 2, "-readers must be positive, not 0"},
		{"negative thumbnailers", []string{"-thumbnailers", "-3"}, 2, "-thumbnailers must be positive, not -3"},
		{"no pixels", []string{"-max-pixels", "0"}, 2, "-max-pixels must be positive, not 0"},
		{"too many bytes", []string{"-max-bytes", "99999999999999999999"}, 2, "value out of range"},
		{"empty input", []string{"-in", ""}, 2, "-in must not be empty"},
		{"empty output", []string{"-out="}, 2, "-out must not be empty"},
		{"input missing", []string{"-in", filepath.Join(good, "missing")}, 2, "input directory"},
		{"input is a file", []string{"-in", file}, 2, "input directory"},
		{"output is a file", []string{"-in", torn, "-out", file}, 2, "output directory"},
		{"output below a file", []string{"-in", torn, "-out", filepath.Join(file, "x")}, 2, "output directory"},
		{"output is the input", []string{"-in", good, "-out", good}, 2, "feed on"},
		{"output inside the input", []string{"-in", good, "-out", filepath.Join(good, "x")}, 2, "feed on"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, stdout, stderr := programtest.Call(t, run, test.args...)
			if status != test.status || !strings.Contains(stdout+stderr, test.says) {
				t.Errorf("status %d, want %d and %q\nstdout: %s\nstderr: %s", status, test.status, test.says, stdout, stderr)
			}
			coretest.Check(t, status != program.Unusable || stdout == "", "an error on stdout: %s", stdout)
		})
	}
	if entries, err := os.ReadDir(good); err != nil || len(entries) != 1 {
		t.Errorf("the input now holds %v, %v", entries, err)
	}
}

func TestWithoutArguments(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	status, stdout, stderr := programtest.Run(t, programtest.Command(t))
	if status != program.OK {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	_, rest, _ := strings.Cut(stdout, "writing ")
	dir, _, _ := strings.Cut(rest, "\n")
	for _, name := range []string{"thumbs", "metadata.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("the printed output directory: %v", err)
		}
	}
	if !strings.Contains(stderr, " files, ") || strings.Contains(stdout+stderr, "\x1b") {
		t.Errorf("progress without a terminal must be plain lines, not %q", stderr)
	}
}

// The go command knows the default of -in, and starts the programs that link more.
func TestWithoutGo(t *testing.T) {
	t.Setenv("PATH", "")
	for says, args := range map[string][]string{"no -in, and no default for it": nil, "go run ./demo/durable": {"durable"}} {
		status, _, stderr := programtest.Call(t, run, args...)
		coretest.Check(t, status == program.Unusable && strings.Contains(stderr, says), "status %d, %s", status, stderr)
	}
}
