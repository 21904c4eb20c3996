//go:build unix

package guide_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

const childMain = "EPHEMERAL_GUIDE_MAIN" // set in the child process that runs the program of page 5

func TestMain(m *testing.M) {
	if os.Getenv(childMain) != "" {
		Example_main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A real process gets SIGTERM while it has work. Accepted work ends, and the last signals, metrics and failures are
// printed. Work that does not end in time is named, and the rest is still printed.
func TestMainEndsAtSIGTERM(t *testing.T) {
	for _, test := range []struct {
		name         string
		grace        string
		orders       []string
		exit         int
		out, without []string
		err          []string
	}{
		{"in time", "1h", []string{"broken", "slow"}, 0,
			[]string{
				"msg=order.shipped signal.name=order.shipped signal.key=slow", `msg=mail.sent signal.name=mail.sent signal.key="slow is on its way"`, "broken failed: no such shelf",
				"metric: ephemeral.coordinator.succeeded 1", "metric: ephemeral.coordinator.failed 1",
			}, nil, nil},
		{"too late", "50ms", []string{"slow", "stuck"}, 1,
			[]string{"metric: ephemeral.coordinator.enqueued 2"}, []string{"stuck is on its way"},
			[]string{`core: "orders" is closed before it is drained: context deadline exceeded`, "is running"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-listen", "localhost:0", "-grace", test.grace)
			child.Env = append(os.Environ(), childMain+"=1")
			var stderr bytes.Buffer
			child.Stderr = &stderr
			pipe, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			stdout := bufio.NewReader(pipe)
			line, err := stdout.ReadString('\n')
			address, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
			if err != nil || !found {
				t.Fatalf("it printed %q, %v: %s", line, err, &stderr)
			}
			for _, order := range test.orders {
				answer, err := http.PostForm("http://"+address, url.Values{"order": {order}})
				if err != nil || answer.StatusCode != http.StatusOK {
					t.Fatal(answer, err)
				}
				answer.Body.Close()
			}
			if err := child.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			out, err := io.ReadAll(stdout)
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
				t.Fatal(err)
			}
			if got := child.ProcessState.ExitCode(); got != test.exit {
				t.Errorf("exit status %d, want %d: %s", got, test.exit, &stderr)
			}
			for _, want := range test.out {
				coretest.Check(t, strings.Contains(string(out), want), "it did not print %q:\n%s", want, out)
			}
			for _, never := range test.without {
				coretest.Check(t, !strings.Contains(string(out), never), "it printed %q:\n%s", never, out)
			}
			for _, want := range test.err {
				coretest.Check(t, strings.Contains(stderr.String(), want), "its error lacks %q:\n%s", want, &stderr)
			}
		})
	}
}
