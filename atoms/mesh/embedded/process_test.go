package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	nats "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/mesh"
	"github.com/ephemeralgo/ephemeral/atoms/mesh/embedded"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const (
	lease  = 1500 * time.Millisecond // of the tests of leases
	calm   = 5 * time.Second         // of the others: no load makes a node silent for so long
	secret = "pass:word@1"
)

// childEnv has the orders of a process that a test starts: it is a node.
const childEnv = "EPHEMERAL_MESH_NODE"

type orders struct {
	Address string
	Options mesh.Options
}

func TestMain(m *testing.M) {
	if env := os.Getenv(childEnv); env != "" {
		var o orders
		if err := json.Unmarshal([]byte(env), &o); err != nil {
			panic(err)
		}
		serve(o)
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // tests wait for clocks and do not compute
		panic(err)
	}
	os.Exit(m.Run())
}

// serve is a process that is a node. It does what it reads, and answers each line with one.
func serve(o orders) {
	conn, err := nats.Connect(o.Address, nats.UserInfo(embedded.User, secret), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		panic(err)
	}
	sink := signals.NewSink(signals.SinkOptions{})
	m, err := mesh.Join(context.Background(), conn, sink, o.Options)
	if err != nil {
		panic(err)
	}
	releases := map[string]func(){}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		do, name, _ := strings.Cut(lines.Text(), " ")
		var answer any = "done"
		switch do {
		case "hold":
			releases[name] = sink.Hold(name, "", 0)
		case "release":
			releases[name]()
		case "raise":
			sink.Raise(name)
		case "wait":
			sink.WaitFor(context.Background(), name)
		case "gone":
			sink.WaitGone(context.Background(), name)
		case "flush":
			answer = m.Flush(context.Background())
		}
		fmt.Println(answer)
	}
}

// child is a process that is a node.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

// start starts a process that joins through the address, behind other words of a command.
func start(t *testing.T, address string, opts mesh.Options, command ...string) *child {
	t.Helper()
	opts.Lease = lease
	env, err := json.Marshal(orders{address, opts})
	require.NoError(t, err)
	command = append(command, os.Args[0])
	c := &child{t: t, cmd: exec.Command(command[0], command[1:]...)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(env))
	c.cmd.Stderr = os.Stderr
	c.in, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.out = bufio.NewScanner(out)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	})
	require.Equal(t, "ready", c.answer())
	return c
}

func (c *child) answer() string {
	c.t.Helper()
	require.True(c.t, c.out.Scan(), "the process has ended")
	return c.out.Text()
}

// do sends a line, and returns the answer.
func (c *child) do(line string) string {
	c.t.Helper()
	fmt.Fprintln(c.in, line)
	return c.answer()
}

// node is a mesh of this process.
type node struct {
	*mesh.Mesh
	sink *signals.Sink
}

// options are those of all nodes.
func options(name string) mesh.Options {
	return mesh.Options{Cluster: "test", Name: name, Share: "a.*", Lease: calm}
}

func join(t *testing.T, conn *nats.Conn, opts mesh.Options) *node {
	t.Helper()
	sink := signals.NewSink(signals.SinkOptions{Capacity: 50_000})
	m, err := mesh.Join(t.Context(), conn, sink, opts)
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return &node{m, sink}
}

// soon is a context that ends when a test has waited too long.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second+2*cutTime) // TCP tries again ever more seldom
	t.Cleanup(cancel)
	return ctx
}

// present waits until a signal is there, and gone until it is not.
func (n *node) present(t *testing.T, pattern string) {
	t.Helper()
	_, err := n.sink.WaitFor(soon(t), pattern)
	require.NoError(t, err, pattern)
}

// seen is when the newest message of another node was sent, or long ago.
func (n *node) seen(name string) time.Time {
	for _, other := range n.Nodes() {
		if other.Name == name {
			return other.Seen
		}
	}
	return time.Time{}
}

func (n *node) gone(t *testing.T, pattern string) {
	t.Helper()
	require.NoError(t, n.sink.WaitGone(soon(t), pattern), pattern)
}

// address is an address of this machine where nobody listens. It does not try by listening: a process that
// another test starts at that moment would have the listener, too, until it runs its own program. Systems
// take the ports of outgoing connections from above 32767, so none of them takes it.
func address(t *testing.T) string {
	t.Helper()
	for {
		at := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		conn, err := net.DialTimeout("tcp", at, 100*time.Millisecond)
		if err != nil {
			return at
		}
		conn.Close()
	}
}

// run starts a server, which is closed at the end of the test.
func run(t *testing.T, opts embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.New(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}
