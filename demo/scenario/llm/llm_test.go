package llm

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// pipes is a network in memory: unlike a real one, it knows the clock of a bubble.
type pipes chan net.Conn

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listener struct {
	pipes
	closed chan struct{}
}

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.pipes:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { close(l.closed); return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		network := make(pipes)
		err := run(t.Context(), scenario.New(&out), listener{network, make(chan struct{})}, &http.Transport{DialContext: network.dial})
		if err != nil {
			t.Fatalf("%v after\n%s", err, &out)
		}
		t.Log("\n" + out.String())
	})
}
