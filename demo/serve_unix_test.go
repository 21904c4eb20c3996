//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
)

// readUntil returns all lines up to one that contains text.
func readUntil(t *testing.T, out *bufio.Reader, text string) (all string) {
	t.Helper()
	for {
		line, err := out.ReadString('\n')
		if all += line; strings.Contains(line, text) {
			return all
		}
		if err != nil {
			t.Fatalf("%v, want %q in:\n%s", err, text, all)
		}
	}
}

func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

func end(t *testing.T, cmd *exec.Cmd, out io.Reader, status int) string {
	t.Helper()
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("ended with %v, want status %d\n%s", cmd.ProcessState, status, rest)
	}
	return string(rest)
}

// Served until Ctrl-C, the page shows work. Then that is finished, or not.
func TestServe(t *testing.T) {
	for _, test := range []struct {
		drain    string
		allow    bool
		status   int
		says     string
		finished bool
	}{
		{"1m", false, exitOK, "", true},
		{"1ns", true, exitFailures, "not drained within 1ns", false},
	} {
		t.Run(test.drain, func(t *testing.T) {
			cmd := startDemo(t, "serve", "-addr", "127.0.0.1:0", "-drain", test.drain)
			if test.allow {
				cmd.Args = append(cmd.Args, "-allow")
			}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout := started(t, cmd)
			line := readUntil(t, stdout, "until Ctrl-C")
			url := line[strings.Index(line, "http://"):strings.LastIndex(line, ",")]
			var seen struct {
				ReadOnly     bool
				Coordinators []core.Stats
				Queues       []any
				Schedules    []any
				Sinks        []any
			}
			for len(seen.Coordinators) == 0 || seen.Coordinators[1].Running == 0 {
				get(t, url+"api/overview", &seen)
			}
			if seen.ReadOnly == test.allow || len(seen.Coordinators) != 3 || len(seen.Queues) != 1 || len(seen.Schedules) != 2 || len(seen.Sinks) != 2 {
				t.Errorf("the page shows %+v", seen)
			}
			interrupt(t, cmd)
			totals := end(t, cmd, stdout, test.status)
			if !strings.Contains(totals, "interrupted") || !strings.Contains(totals, " orders\n") || !strings.Contains(stderr.String(), test.says) {
				t.Errorf("stdout: %s\nstderr: %s", totals, stderr.String())
			}
			nothingLeft(t, cmd.Env)
		})
	}
}

func started(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(stdout)
}

func get(t *testing.T, url string, v any) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(v); err != nil {
		t.Fatal(err)
	}
}

// A command that does not end after Ctrl-C ends with the second one, or when it may not drain
// any longer. The handler is the same for all commands.
func TestSecondInterrupt(t *testing.T) {
	for _, test := range []struct {
		drain, says string
	}{{"1h", ""}, {"1ms", "not drained within 1ms"}} {
		cmd := startDemo(t, "scenario", "-drain", test.drain, "stuck")
		var stderr strings.Builder
		cmd.Env, cmd.Stderr = append(cmd.Env, beCommand+"=stuck"), &stderr
		stdout := started(t, cmd)
		readUntil(t, stdout, "running")
		interrupt(t, cmd)
		if test.says == "" {
			readUntil(t, stdout, "stopping: interrupted")
			interrupt(t, cmd)
		}
		end(t, cmd, stdout, exitInterrupted)
		if !strings.Contains(stderr.String(), test.says) {
			t.Errorf("want %q in %q", test.says, stderr.String())
		}
	}
}
