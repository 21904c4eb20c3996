package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/internal/programtest"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// The command "ephemeral top" shows a real status page, for scripts and in a terminal, and
// its keys change the program.
func TestTop(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("it builds a program: set EPHEMERAL_LONG")
	}
	program := filepath.Join(t.TempDir(), "ephemeral")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "cmd", "ephemeral")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	sink := signals.NewSink(signals.SinkOptions{})
	orders, err := core.NewKeyedCoordinator(func(item string) string { return item }, func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, core.Options{Name: "orders", Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	var ids [2]core.OperationID
	for i := range ids {
		if ids[i], err = orders.Enqueue(t.Context(), "customer-7"); err != nil {
			t.Fatal(err)
		}
	}
	const token = "a token of 21 letters"
	view, err := statuspage.Token(token)
	if err != nil {
		t.Fatal(err)
	}
	page, err := statuspage.New(statuspage.Options{
		Title: "shop", Sinks: map[string]*signals.Sink{"shop": sink}, Coordinators: []core.Inspector{orders}, Sink: sink, View: view,
		Allow: func(*http.Request, statuspage.Action) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	server := httptest.NewServer(http.StripPrefix("/status", page))
	defer server.Close()

	top := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append([]string{"top"}, args...)...)
		cmd.Env = append(os.Environ(), "EPHEMERAL_TOKEN="+token, "TERM=xterm-256color")
		return cmd
	}
	status, out, errOut := programtest.Run(t, top("-once", server.URL+"/status"))
	waits := fmt.Sprintf("operation\t%d\torders\tpending\tcustomer-7\t-\t-\t", ids[1])
	for _, want := range []string{"coordinator\torders\t-\t-\t1\t1\t", "sink\tshop\t", waits, fmt.Sprintf("the only slot of key \"customer-7\" is taken by operation %d", ids[0])} {
		if !strings.Contains(out, want) {
			t.Errorf("status %d %s, want %q in\n%s", status, errOut, want, out)
		}
	}
	wrong := top("-once", server.URL+"/status")
	wrong.Env = append(wrong.Env, "EPHEMERAL_TOKEN=wrong")
	if status, _, errOut := programtest.Run(t, wrong); status != 2 || !strings.Contains(errOut, "does not accept the token") {
		t.Errorf("status %d, %s", status, errOut)
	}

	keyboard, tty := terminal(t)
	defer keyboard.Close()
	cmd := top(server.URL + "/status/")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	screen := bufio.NewReader(keyboard)
	for _, step := range [][2]string{
		{"q quit", "p"}, {"pause coordinator orders? y does it", "y"}, {"done: pause", "l"}, {"new limit: ", "3\r"}, {"done: limit", "\r"},
		{"c cancel", "c"}, {"y does it", "y"}, {"done: cancel", "q"},
	} {
		see(t, screen, step[0])
		if _, err := keyboard.WriteString(step[1]); err != nil {
			t.Fatal(err)
		}
	}
	left := see(t, screen, "")
	if err := cmd.Wait(); err != nil || !strings.Contains(left, "\x1b[?1049l") {
		t.Errorf("%v, and the screen of before in %q", err, left)
	}
	err = orders.Wait(t.Context(), ids[0])
	if s := orders.Stats(); !s.Paused || s.Limit != 3 || err == nil || !strings.Contains(err.Error(), "cancelled by 127.0.0.1") {
		t.Errorf("%v, and the operation ended with %v", s, err)
	}
}
