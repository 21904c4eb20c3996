//go:build unix

// Command postgres starts a PostgreSQL server of its own, runs a command beside it, and
// removes the server and its data when the command ends or this program does:
//
//	go run ./scripts/postgres go test ./...
//
// The command finds the server in EPHEMERAL_POSTGRES_DSN, and this program in
// EPHEMERAL_POSTGRES_PROGRAM, with which a test can start another server. Without a
// command, the server runs until the standard input ends; a line "restart" stops it
// without warning and starts it again.
//
// The programs of PostgreSQL are those in PATH, or the newest in /usr/lib/postgresql. The
// server listens on a Unix socket, in a new directory below TMPDIR. PostgreSQL refuses to
// run as root, so root runs it as the user postgres or nobody.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.Exited() {
		os.Exit(failed.ExitCode())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "postgres: %v\n", err)
		os.Exit(1)
	}
}

// run starts the server and runs the command, or serves the commands of stdin.
func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	s, err := newServer()
	if err != nil {
		return err
	}
	defer s.remove()
	if err := s.start(ctx); err != nil {
		return err
	}
	dsn := "postgres://postgres@/postgres?host=" + s.dir
	fmt.Fprintln(stdout, dsn)
	if len(args) == 0 {
		return s.serve(ctx, dsn, stdin, stdout)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = append(os.Environ(), "EPHEMERAL_POSTGRES_DSN="+dsn, "EPHEMERAL_POSTGRES_PROGRAM="+program)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, os.Stderr
	return cmd.Run()
}

// A server is a PostgreSQL server with its files.
type server struct {
	programs string // directory
	dir      string
	as       *syscall.Credential // nil: the user of this process
	guard    *exec.Cmd           // removes the server when its standard input ends
	alive    io.Closer           // that input; the kernel closes it if this process is killed
}

// newServer makes a directory for a server, and the guard that will remove it.
func newServer() (*server, error) {
	s := &server{}
	var err error
	if s.programs, err = programs(); err != nil {
		return nil, err
	}
	if s.as, err = unprivileged(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "ephemeral-postgres-"); err != nil {
		return nil, err
	}
	err = os.Chmod(s.dir, 0o755) // of the socket; PostgreSQL protects its data itself
	if s.as != nil {
		err = errors.Join(err, os.Chown(s.dir, int(s.as.Uid), int(s.as.Gid)))
	}
	const script = `cat >/dev/null; cd /; [ ! -e "$1/data/postmaster.pid" ] || "$0/pg_ctl" stop -s -D "$1/data" -m immediate; rm -rf "$1"`
	s.guard = exec.Command("sh", "-c", script, s.programs, s.dir)
	s.guard.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setsid: true} // a terminal does not interrupt it
	if err == nil {
		s.alive, err = s.guard.StdinPipe()
	}
	if err == nil {
		err = s.guard.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

func (s *server) start(ctx context.Context) error {
	data := filepath.Join(s.dir, "data")
	err := s.call(ctx, "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conf, "listen_addresses = ''\nunix_socket_directories = '%s'\nmax_connections = 300\n", s.dir)
	if err := errors.Join(err, conf.Close()); err != nil {
		return err
	}
	return s.call(ctx, "pg_ctl", "start", "-s", "-w", "-D", data, "-l", filepath.Join(s.dir, "log"))
}

// serve obeys the lines of stdin, and answers each with the address of the server.
func (s *server) serve(ctx context.Context, dsn string, stdin io.Reader, stdout io.Writer) error {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			if line != "restart" {
				return fmt.Errorf("the standard input may have lines \"restart\", not %q", line)
			}
			if err := s.call(ctx, "pg_ctl", "restart", "-s", "-w", "-D", filepath.Join(s.dir, "data"), "-m", "immediate", "-l", filepath.Join(s.dir, "log")); err != nil {
				return err
			}
			fmt.Fprintln(stdout, dsn)
		}
	}
}

// remove stops the server and removes its files.
func (s *server) remove() {
	s.alive.Close()
	s.guard.Wait()
	os.RemoveAll(s.dir)
}

func (s *server) call(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, program), args...)
	cmd.Dir = s.dir // the user may be unable to read that of this process
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return nil
}

// programs returns the directory of the programs of PostgreSQL.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // beside its libraries and the others
			return filepath.Dir(path), nil
		}
	}
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(dirs) == 0 {
		return "", errors.Join(errors.New("there is no initdb in PATH or /usr/lib/postgresql; install PostgreSQL"), err)
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(strings.Split(dir, "/")[4])
		return n
	}
	return slices.MaxFunc(dirs, func(a, b string) int { return version(a) - version(b) }), nil
}

// unprivileged returns the user that runs the server, or nil if it is that of this process.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, err1 := strconv.Atoi(u.Uid)
			gid, err2 := strconv.Atoi(u.Gid)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
