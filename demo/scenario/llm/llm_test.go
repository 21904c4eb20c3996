package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario"

	"github.com/ephemeralgo/ephemeral/core/coretest"
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

// start runs the scenario on a network of pipes.
func start(ctx context.Context, s *scenario.Screen) error {
	network := make(pipes)
	return run(ctx, s, listener{network, make(chan struct{})}, &http.Transport{DialContext: network.dial})
}

func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		screen, begin := scenario.New(&out), time.Now()
		if err := start(t.Context(), screen); err != nil {
			t.Fatalf("%v after\n%s", err, &out)
		}
		if took := time.Since(begin); took > 3500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		// The scheduler decides which messages share a batch, and so when alpha fails.
		for _, want := range []string{
			`batch.flushed: 8 texts in one request`,
			`retry.delayed: llm: embedder: 503 Service Unavailable, again in 1s`,
			`rate.limit.limited \w+`,
			`failover.requested:pri1->pri2`,
			`processor.unhealthy:pri1 alpha`,
			`route.assigned:pri2 chat`,
			`decided by map\[embedding:20 model:20 rules:10\]`,
			`40 texts in 5 requests: batching saved 35`,
			`embedder +7 +1 `,
			`(?m)^=> 50 messages labelled, 2[89] requests, 35 saved, [12] failed over, limits kept$`,
		} {
			coretest.Check(t, regexp.MustCompile(want).Match(out.Bytes()), "no line matches %s", want)
		}
		for line := range strings.Lines(out.String()) {
			coretest.Check(t, len(line) <= 79, "too long: %s", line)
		}
		if t.Failed() {
			t.Log("\n" + out.String())
		}
	})
}

// The context ends while a request waits for Retry-After, and later while models are busy.
func TestCancelled(t *testing.T) {
	for _, after := range []time.Duration{30 * time.Millisecond, 500 * time.Millisecond, 1300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := errors.New("stop")
			time.AfterFunc(after, func() { cancel(stop) })
			begin := time.Now()
			err := start(ctx, scenario.New(io.Discard))
			if took := time.Since(begin); err != stop || took > after+100*time.Millisecond {
				t.Errorf("%v after %v", err, took)
			}
		})
	}
}

// A client that exceeds the limits is detected.
func TestServerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &models{accounts: map[string]*account{"beta": {}}}
		for range maxRequests {
			m.admit("beta", maxTokens/maxRequests)
		}
		time.Sleep(window - time.Nanosecond)
		m.admit("beta", 1)
		time.Sleep(time.Nanosecond)
		m.admit("beta", 1)
		if a := m.accounts["beta"]; a.mostRequests != maxRequests+1 || a.mostTokens != maxTokens+1 {
			t.Errorf("the server has counted %+v", *a)
		}
	})
}
