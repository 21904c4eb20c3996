package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/demo/internal/programtest"
	"golang.org/x/sys/unix"
)

// terminal opens a pseudo terminal of 100 columns. It returns the side of the keyboard, and
// the side of the program.
func terminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	fd := int(keyboard.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100})
	}
	if err == nil {
		tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return keyboard, tty
}

// In a terminal, keys run scenarios one after the other, and Ctrl-C twice or SIGTERM ends
// the menu. The terminal is as before then.
func TestMenu(t *testing.T) {
	for _, test := range []struct {
		scenarios string
		status    int
		steps     [][2]string // a text to wait for, and the keys to press then
	}{
		{"1", program.OK, [][2]string{
			{"q quit", "\r"}, {"=> 1 signal", ""}, {"press any key", "x"}, {"q quit", "j\r"},
			{"failed: core: operation panicked: out of order", ""}, {"press any key", "x"}, {"q quit", "q"},
		}},
		{"1", program.Interrupted, [][2]string{{"q quit", "SIGTERM"}}},
		{"stuck", program.Interrupted, [][2]string{{"q quit", "\r"}, {"running", "\x03"}, {"stopping: ", "\x03"}}},
	} {
		keyboard, tty := terminal(t)
		cmd := programtest.Command(t, "menu")
		cmd.Env = append(cmd.Env, programtest.Env+"="+test.scenarios, "TERM=xterm-256color")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tty.Close()
		screen := bufio.NewReader(keyboard)
		for _, step := range test.steps {
			see(t, screen, step[0])
			if step[1] == "SIGTERM" {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				break
			}
			if _, err := keyboard.WriteString(step[1]); err != nil {
				t.Fatal(err)
			}
		}
		left := see(t, screen, "")
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != test.status || !strings.Contains(left, "\x1b[?1049l") {
			t.Errorf("%s: status %d, want %d, and the screen of before\n%q", test.scenarios, got, test.status, left)
		}
		keyboard.Close()
	}
}

// see reads the output until text appears, or to the end.
func see(t *testing.T, screen *bufio.Reader, text string) string {
	t.Helper()
	var drawn strings.Builder
	for text == "" || !strings.HasSuffix(drawn.String(), text) {
		b, err := screen.ReadByte()
		if err != nil && text != "" {
			t.Fatalf("%v, want %q in:\n%q", err, text, drawn.String())
		} else if err != nil {
			break
		}
		drawn.WriteByte(b)
	}
	return drawn.String()
}
