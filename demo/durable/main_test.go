package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/demo/internal/programtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(programtest.Env) == "" {
		os.Exit(m.Run())
	}
	main()
}

func TestUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{"-items must be positive": {"-items", "0"}, "takes no arguments": {"x"}, "demo: ": {"-worker", "x", "-at", file}} {
		status, _, stderr := programtest.Call(t, run, args...)
		coretest.Check(t, status == program.Unusable && strings.Contains(stderr, says), "%v: status %d, want %d and %q\nstderr: %s", args, status, program.Unusable, says, stderr)
	}
}

// inPlaces runs the test with a SQLite file, and with a PostgreSQL if there is one.
func inPlaces(t *testing.T, test func(t *testing.T, env string)) {
	for _, dsn := range slices.Compact([]string{"", server()}) {
		name := "sqlite"
		if dsn != "" {
			name = "postgres"
		}
		t.Run(name, func(t *testing.T) { test(t, "EPHEMERAL_POSTGRES_DSN="+dsn) })
	}
}

// Real processes are killed, and every item is done once and in order.
func TestDurable(t *testing.T) {
	t.Parallel()
	inPlaces(t, func(t *testing.T, env string) {
		cmd := programtest.Command(t, "-items", "120")
		cmd.Env = append(cmd.Env, env)
		status, stdout, stderr := programtest.Run(t, cmd)
		for _, want := range []string{"; kill -9 worker-", " 120 done, 0 waiting, 0 lost\n", " 0 twice, 0 out of the order"} {
			coretest.Check(t, status == program.OK && strings.Contains(stdout, want), "status %d, want 0 and %q\nstdout: %s\nstderr: %s", status, want, stdout, stderr)
		}
		programtest.NothingLeft(t, cmd.Env)
	})
}

func TestJudge(t *testing.T) {
	a, b := func(n int) job { return job{"a", n} }, func(n int) job { return job{"b", n} }
	for _, test := range []struct {
		name    string
		effects []job
		waiting int
		want    verdict
	}{
		{"all", []job{a(1), b(1), b(2), a(2)}, 0, verdict{done: 4}},
		{"interrupted", []job{a(1), b(1)}, 2, verdict{done: 2, waiting: 2}},
		{"lost", []job{a(1), b(1), b(2)}, 0, verdict{done: 3, lost: 1}},
		{"lost in the middle", []job{b(1), b(2), a(2)}, 0, verdict{done: 3, lost: 1, late: 1}},
		{"twice", []job{a(1), a(1), b(1), b(2), a(2)}, 0, verdict{done: 4, twice: 1}},
		{"overtaken", []job{a(2), a(1), b(1), b(2)}, 0, verdict{done: 4, late: 2}},
	} {
		got := verdict{waiting: test.waiting}
		if got.judge(test.effects, 4); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
		if fine := test.want.lost+test.want.twice+test.want.late == 0; got.broken() == fine {
			t.Errorf("%s: broken is %v", test.name, got.broken())
		}
	}
}
