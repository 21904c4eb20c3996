//go:build unix

package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/demo/internal/programtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(programtest.Env) == "" {
		os.Exit(m.Run())
	}
	opening = 10 * time.Millisecond
	main()
}

func TestUsage(t *testing.T) {
	for says, args := range map[string][]string{"-what": {"-what"}, `"what"`: {"what"}, "nowhere": {"-addr", "nowhere"}} {
		status, stdout, stderr := programtest.Call(t, run, args...)
		coretest.Check(t, status == program.Unusable && strings.Contains(stderr, says) && stdout == "", "%v: status %d, stdout %s, stderr %s", args, status, stdout, stderr)
	}
}

// The page shows work until Ctrl-C. Then the work is finished, or not, as the case says.
func TestServe(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		drain    string
		allow    bool
		status   int
		says     string
		finished bool
	}{
		{"1m", false, program.OK, "", true},
		{"1ns", true, program.Failures, "not drained within 1ns", false},
	} {
		t.Run(test.drain, func(t *testing.T) {
			t.Parallel()
			cmd := programtest.Command(t, "-addr", "127.0.0.1:0", "-drain", test.drain)
			if test.allow {
				cmd.Args = append(cmd.Args, "-allow")
			}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout := programtest.Start(t, cmd)
			line := programtest.ReadUntil(t, stdout, "until Ctrl-C")
			link := line[strings.Index(line, "http://"):strings.LastIndex(line, ",")]
			url, token, _ := strings.Cut(link, "?token=")
			coretest.Check(t, (token != "") == test.allow, "the link is %s", link)
			var seen struct {
				ReadOnly     bool
				Coordinators []core.Stats
				Queues       []any
				Schedules    []any
				Sinks        []any
			}
			for len(seen.Coordinators) == 0 || seen.Coordinators[1].Running == 0 {
				get(t, url+"api/overview", token, &seen)
			}
			for test.finished && seen.Coordinators[0].Running == 0 { // the running round must be finished, too
				get(t, url+"api/overview", token, &seen)
			}
			if seen.ReadOnly == test.allow || len(seen.Coordinators) != 3 || len(seen.Queues) != 1 || len(seen.Schedules) != 2 || len(seen.Sinks) != 2 {
				t.Errorf("the page shows %+v", seen)
			}
			programtest.Interrupt(t, cmd)
			totals := programtest.End(t, cmd, stdout, test.status)
			if !strings.Contains(totals, "interrupted") || !strings.Contains(totals, " orders\n") || !strings.Contains(stderr.String(), test.says) {
				t.Errorf("stdout: %s\nstderr: %s", totals, stderr.String())
			}
			for line := range strings.Lines(totals) {
				if f := strings.Fields(line); test.finished && len(f) == 5 && f[4] == "pipeline" && f[0] != f[1] {
					t.Errorf("a round that was accepted is not finished:\n%s", totals)
				}
			}
			programtest.NothingLeft(t, cmd.Env)
		})
	}
}

// A browser cannot open the address of a listener on all addresses.
func TestPageURL(t *testing.T) {
	for addr, want := range map[string]string{
		"[::]:8080": "http://localhost:8080/", "0.0.0.0:8080": "http://localhost:8080/", "127.0.0.1:1": "http://127.0.0.1:1/", "[::1]:1": "http://[::1]:1/",
	} {
		if got := pageURL(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))); got != want {
			t.Errorf("%s is shown as %s, want %s", addr, got, want)
		}
	}
}

func get(t *testing.T, url, token string, v any) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(v); err != nil {
		t.Fatal(err)
	}
}
