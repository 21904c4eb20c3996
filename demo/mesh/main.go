// Command mesh runs three processes with atoms/mesh: a breaker that one opens stops the others, and what a killed
// one held ends.
//
// Usage:
//
//	go run ./demo/mesh
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/mesh"
	"github.com/ephemeralgo/ephemeral/atoms/mesh/embedded"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

const meshLease = time.Second

// A mesh wakes durable queues: see [durable.Options].Waker.
var _ durable.Waker = (*mesh.Mesh)(nil)

func main() { program.Main(run) }

func run(ctx context.Context, args []string, stdout, stderr *os.File) int {
	fs, drain := program.NewFlags("mesh", stderr)
	node := fs.String("node", "", "be the node `NAME`; the demo starts its nodes itself")
	servers := fs.String("servers", "", "`ADDRESSES` of the servers, the own one first")
	if status, ok := program.Parse(fs, args); !ok {
		return status
	}
	program.ExitAfter(ctx, *drain, stderr)
	var err error
	switch {
	case fs.NArg() > 0:
		err = errors.New("mesh takes no arguments")
	case *node != "":
		err = beNode(ctx, *node, strings.Split(*servers, ","), os.Stdin, stdout)
	default:
		err = showMesh(ctx, stdout, stderr)
	}
	switch {
	case ctx.Err() != nil:
		return program.Interrupted
	case err != nil:
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return program.Unusable
	}
	return program.OK
}

// beNode is a process with a server and a coordinator. It does what it reads, and answers each
// line with one. It ends with its input.
func beNode(ctx context.Context, name string, servers []string, in io.Reader, out io.Writer) error {
	server, err := embedded.New(ctx, embedded.Options{Listen: servers[0], Peers: servers})
	if err != nil {
		return err
	}
	defer server.Close()
	sink := signals.NewSink(signals.SinkOptions{})
	m, err := mesh.Join(ctx, server.Conn(), sink, mesh.Options{Cluster: "demo", Name: name, Share: "circuit.open.*, update.*", MinNodes: len(servers), Lease: meshLease})
	if err != nil {
		return err
	}
	defer m.Close()
	breaker, err := circuitbreaker.New(sink, circuitbreaker.Options{Name: "warehouse", OpenFor: time.Minute})
	if err != nil {
		return err
	}
	defer breaker.Close()
	orders, err := core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{Name: "orders", Sink: sink, CancelOn: "circuit.open.warehouse, update.*"})
	if err != nil {
		return err
	}
	defer orders.Close()
	for lines := bufio.NewScanner(in); lines.Scan() && ctx.Err() == nil; {
		answer := "done"
		switch lines.Text() {
		case "hear": // until all nodes are heard
			err = sink.WaitGone(ctx, mesh.SignalAlone)
		case "order":
			if refused := orders.Do(ctx, "order"); refused != nil {
				answer = refused.Error()
			}
		case "break":
			breaker.Trip()
			err = m.Flush(ctx)
		case "mend":
			breaker.Reset()
			err = m.Flush(ctx)
		case "update":
			defer sink.Hold("update.in-progress", "prices", 0)() // a killed process does not get there
			err = m.Flush(ctx)
		case "wait": // until no update is in progress
			err = sink.WaitGone(ctx, "update.*")
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, answer)
	}
	return nil
}

// showMesh starts three nodes and shows what one does to the others.
func showMesh(ctx context.Context, stdout, stderr io.Writer) error {
	servers, err := freeAddresses(3)
	if err != nil {
		return err
	}
	var nodes []*meshNode
	for i := range servers {
		n, err := startNode(fmt.Sprint("shop-", i+1), slices.Concat(servers[i:], servers[:i]), stderr)
		if err != nil {
			return err
		}
		defer n.end()
		nodes = append(nodes, n)
	}
	say := func(who int, line, what string) error {
		answer, err := nodes[who].do(line)
		fmt.Fprintf(stdout, "%s  %-28s %s\n", nodes[who].name, what, answer)
		return err
	}
	for _, step := range []struct {
		who        int
		line, what string
	}{
		{0, "hear", "hears the others"}, {1, "hear", "hears the others"}, {2, "hear", "hears the others"},
		{1, "order", "takes an order:"},
		{0, "break", "opens its breaker"},
		{1, "order", "takes an order:"}, {2, "order", "takes an order:"},
		{0, "mend", "closes its breaker"},
		{1, "order", "takes an order:"},
		{2, "update", "holds update.in-progress"},
		{1, "order", "takes an order:"},
	} {
		if err := say(step.who, step.line, step.what); err != nil {
			return err
		}
	}
	fmt.Fprintln(stdout, "kill -9 shop-3")
	killed := time.Now()
	if err := nodes[2].cmd.Process.Kill(); err != nil {
		return err
	}
	if err := say(1, "wait", "sees the end of the update:"); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "it ended %.1fs after the kill; Lease is %v\n", time.Since(killed).Seconds(), meshLease)
	return say(1, "order", "takes an order:")
}

// freeAddresses returns addresses of this machine that are free now. Systems take the ports of
// outgoing connections from above 32767, so no connection takes one of them.
func freeAddresses(n int) (addresses []string, err error) {
	for tries := 0; len(addresses) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		switch {
		case err == nil:
			defer l.Close()
			addresses = append(addresses, l.Addr().String())
		case tries == 100:
			return nil, err
		}
	}
	return addresses, nil
}

// meshNode is a process that is a node.
type meshNode struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
}

func startNode(name string, servers []string, stderr io.Writer) (*meshNode, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := &meshNode{name: name, cmd: exec.Command(self, "-node", name, "-servers", strings.Join(servers, ","))}
	n.cmd.Stderr = stderr
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.out = bufio.NewScanner(out)
	return n, n.cmd.Start()
}

// do lets the node do something, and returns its answer.
func (n *meshNode) do(line string) (answer string, err error) {
	if _, err := fmt.Fprintln(n.in, line); err != nil {
		return "", fmt.Errorf("%s: %w", n.name, err)
	}
	if !n.out.Scan() {
		return "", fmt.Errorf("%s has ended by itself", n.name)
	}
	return n.out.Text(), nil
}

func (n *meshNode) end() {
	n.in.Close()
	n.cmd.Wait() // an end by a signal is no failure
}
