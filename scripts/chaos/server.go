//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A server is a PostgreSQL server that scripts/postgres has started for this program.
type server struct {
	cmd *exec.Cmd
	in  io.WriteCloser // a line of "restart"; its end removes the server
	out *bufio.Scanner // the address, after the start and each restart
	dir string         // of its socket
}

func startServer() (*server, error) {
	program := os.Getenv("EPHEMERAL_POSTGRES_PROGRAM")
	if program == "" {
		return nil, errors.New("there is no EPHEMERAL_POSTGRES_PROGRAM: run go run ./scripts/postgres go run ./scripts/chaos")
	}
	s := &server{cmd: exec.Command(program)}
	s.cmd.Stderr = os.Stderr
	var err1, err2 error
	s.in, err1 = s.cmd.StdinPipe()
	out, err2 := s.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, s.cmd.Start()); err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(out)
	if !s.out.Scan() {
		return nil, fmt.Errorf("%s has not started a server: %w", program, s.cmd.Wait())
	}
	_, s.dir, _ = strings.Cut(s.out.Text(), "host=")
	return s, nil
}

func dsn(dir string) string {
	return "postgres://postgres@/postgres?connect_timeout=2&pool_max_conns=4&host=" + dir
}

// restart stops the server without warning and starts it again.
func (s *server) restart() error {
	if _, err := fmt.Fprintln(s.in, "restart"); err != nil {
		return err
	}
	if !s.out.Scan() {
		return errors.New("the server has not restarted")
	}
	return nil
}

func (s *server) remove() {
	s.in.Close()
	s.cmd.Wait()
}

// A proxy is between one worker and the server.
type proxy struct {
	listener net.Listener
	dir      string // of its socket
	server   string // socket
	edit     func([]byte) []byte
	gate     sync.RWMutex // locked: nothing passes

	mu    sync.Mutex
	pairs map[*pair]bool
}

// A pair is a connection of the worker and that which the proxy has made for it.
type pair struct {
	worker, server net.Conn
	doomed         atomic.Bool // is closed instead of getting the next answer
	silent         atomic.Bool // stays open, and nothing passes any more
}

func (p *pair) close() {
	p.worker.Close()
	p.server.Close()
}

const socket = ".s.PGSQL.5432"

// newProxy makes a proxy in front of the server in a directory. Edit changes what the worker
// sends, without changing its length.
func newProxy(dir string, edit func([]byte) []byte) (*proxy, error) {
	own, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", filepath.Join(own, socket))
	p := &proxy{listener: l, dir: own, server: filepath.Join(dir, socket), edit: edit, pairs: map[*pair]bool{}}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(own))
	}
	go p.serve()
	return p, nil
}

func (p *proxy) serve() {
	for {
		worker, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil { // it restarts
			worker.Close()
			continue
		}
		c := &pair{worker: worker, server: server}
		p.mu.Lock()
		p.pairs[c] = true
		p.mu.Unlock()
		go p.copy(c, server, worker, p.edit)
		go p.copy(c, worker, server, func(b []byte) []byte {
			if c.doomed.Load() {
				return nil
			}
			return b
		})
	}
}

func (p *proxy) copy(c *pair, to, from net.Conn, edit func([]byte) []byte) {
	defer func() {
		c.close()
		p.mu.Lock()
		delete(p.pairs, c)
		p.mu.Unlock()
	}()
	for b := make([]byte, 64<<10); ; {
		n, err := from.Read(b)
		p.gate.RLock()
		some := edit(b[:n])
		if err == nil && !c.silent.Load() {
			_, err = to.Write(some)
		}
		p.gate.RUnlock()
		if err != nil || some == nil {
			return
		}
	}
}

// cut breaks half of the connections: it closes them at once, or when the server answers next,
// so that the worker cannot know what has become of what it has asked for, or it loses
// what passes from now on, as a network does.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		switch rand.IntN(6) {
		case 0:
			c.close()
		case 1:
			c.doomed.Store(true)
		case 2:
			c.silent.Store(true)
		}
	}
}

// stall lets nothing pass for a while. Connections stay open.
func (p *proxy) stall(d time.Duration) {
	p.gate.Lock()
	defer p.gate.Unlock()
	time.Sleep(d)
}

func (p *proxy) remove() {
	p.listener.Close()
	os.RemoveAll(p.dir)
}

// mutations are parts of the statements and functions of atoms/durable/postgres, each with what is
// put in its place so that a fence is missing.
var mutations = map[string][][2]string{
	"":        nil,
	"nolock":  {{"pg_advisory_xact_lock(h)", "h"}, {"pg_try_advisory_xact_lock(h)", "(h = h)"}},
	"notoken": {{"where current = token", "where true"}},
	"noclass": {{"select array_agg(c.room), ", "select array_agg(1000), "}},
	"nolimit": {{"perform pg_advisory_xact_lock(hashtextextended(p_queue, 2))", "perform 1"}},
}

// mutation returns a function that puts a mutation into what is sent to the server.
func mutation(name string) (func([]byte) []byte, error) {
	pairs, ok := mutations[name]
	if !ok {
		return nil, fmt.Errorf("-mutate must be nolock, notoken, nolimit or noclass, not %q", name)
	}
	return func(b []byte) []byte {
		for _, m := range pairs {
			b = bytes.ReplaceAll(b, []byte(m[0]), fmt.Appendf(nil, "%-*s", len(m[0]), m[1]))
		}
		return b
	}, nil
}
