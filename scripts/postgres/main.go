//go:build unix

// Command postgres starts a PostgreSQL server and runs a command. It removes the server and
// its data when the command or this program ends:
//
//	go run ./scripts/postgres go test ./...
//
// The command finds the server in EPHEMERAL_POSTGRES_DSN, and this program in
// EPHEMERAL_POSTGRES_PROGRAM, with which a test can start another server. Without a
// command, the server runs until the standard input ends; a line "restart" stops it
// without warning and starts it again, and is answered by the address.
//
// The programs of PostgreSQL are those in PATH, or the newest in /usr/lib/postgresql. The
// server listens on a Unix socket, in a new directory below TMPDIR. PostgreSQL refuses to
// run as root, so root runs it as the user postgres or nobody.
package main

import (
	"bufio"
	"cmp"
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
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "postgres: %v\n", err)
		os.Exit(1)
	}
}

// run starts the server and runs the command, or obeys the standard input.
func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := newServer()
	if err != nil {
		return err
	}
	defer s.remove()
	if err := s.start(ctx); err != nil {
		return err
	}
	dsn := "postgres://postgres@/postgres?host=" + s.dir
	fmt.Println(dsn)
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		stop() // a signal ends this process; the guard removes the server
		return s.obey(os.Stdin, dsn)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = append(os.Environ(), "EPHEMERAL_POSTGRES_DSN="+dsn, "EPHEMERAL_POSTGRES_PROGRAM="+program)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// A server is a PostgreSQL server with its files.
type server struct {
	programs string // directory
	dir      string
	as       *syscall.Credential // nil: the user of this process
	guard    *exec.Cmd           // removes the server when the standard input of the guard ends
	alive    io.Closer           // the standard input of the guard; the kernel closes it if this process is killed
}

// newServer makes a directory for a server, and the guard that will remove it.
func newServer() (*server, error) {
	programs, err1 := programs()
	as, err2 := unprivileged()
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ephemeral-postgres-")
	if err != nil {
		return nil, err
	}
	s := &server{programs: programs, dir: dir, as: as}
	err = os.Chmod(dir, 0o755) // the directory of the socket; PostgreSQL protects its data itself
	if s.as != nil {
		err = errors.Join(err, os.Chown(s.dir, int(s.as.Uid), int(s.as.Gid)))
	}
	const script = `cat >/dev/null; cd /; [ ! -e "$1/data/postmaster.pid" ] || "$0/pg_ctl" stop -s -D "$1/data" -m immediate; rm -rf "$1"`
	s.guard = exec.Command("sh", "-c", script, s.programs, s.dir)
	s.guard.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setsid: true} // so that a terminal does not interrupt the guard
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
	err := s.call(ctx, "initdb", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(s.dir, "data", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conf, "listen_addresses = ''\nunix_socket_directories = '%s'\nmax_connections = 300\n", s.dir)
	return cmp.Or(err, conf.Close(), s.call(ctx, "pg_ctl", "start", "-s", "-w", "-l", "log"))
}

// obey restarts the server for each line "restart", and answers with its address.
func (s *server) obey(lines io.Reader, dsn string) error {
	for in := bufio.NewScanner(lines); in.Scan(); fmt.Println(dsn) {
		if in.Text() != "restart" {
			return fmt.Errorf("a line of the standard input must be \"restart\", not %q", in.Text())
		}
		if err := s.call(context.Background(), "pg_ctl", "restart", "-s", "-w", "-l", "log", "-m", "immediate"); err != nil {
			return err
		}
	}
	return nil
}

// remove stops the server and removes its files.
func (s *server) remove() {
	s.alive.Close()
	s.guard.Wait()
	os.RemoveAll(s.dir)
}

func (s *server) call(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, program), args...)
	cmd.Dir = s.dir // the user may be unable to read the directory of this process
	cmd.Env = append(os.Environ(), "PGDATA="+filepath.Join(s.dir, "data"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return nil
}

// programs returns the directory of the programs of PostgreSQL.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path) // the real path, beside the libraries and the other programs
		return filepath.Dir(path), err
	}
	dirs, err := filepath.Glob("/usr/lib/postgresql/[1-9][0-9]/bin")
	if len(dirs) == 0 {
		return "", errors.Join(errors.New("there is no initdb in PATH or /usr/lib/postgresql: install PostgreSQL"), err)
	}
	return slices.Max(dirs), nil
}

// unprivileged returns the user that runs the server, or nil for the user of this process.
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
