// Command serve runs the file pipeline again and again beside other work, with a status page.
//
// Usage:
//
//	go run ./demo/serve [-addr HOST:PORT] [-allow]
package main

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/filepipeline"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

func main() { program.Main(run) }

func run(ctx context.Context, args []string, stdout, stderr *os.File) int {
	fs, drain := program.NewFlags("serve", stderr)
	addr := fs.String("addr", "127.0.0.1:8080", "serve the status page at `HOST:PORT`; port 0 picks one")
	allow := fs.Bool("allow", false, "permit actions on the page, such as cancel and pause, for those that open the link, which has a token")
	if status, ok := program.Parse(fs, args); !ok {
		return status
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "demo: serve takes no argument %q\n", fs.Arg(0))
		return program.Unusable
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return program.Unusable
	}
	if err := serve(ctx, listener, *allow, *drain, stdout); err != nil {
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return program.Failures
	}
	return program.OK
}

// serve runs everything until ctx ends. Then it drains, for a limited time, prints the
// results of the work, and ends.
func serve(ctx context.Context, listener net.Listener, allow bool, drain time.Duration, w io.Writer) error {
	pictures, shop := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
	pipeline, remove, err := newRounds(pictures)
	if err != nil {
		return err
	}
	defer remove()
	l, err := newLoad(shop)
	if err != nil {
		return err
	}
	opts := statuspage.Options{
		Title:        "Ephemeral demo",
		Sinks:        map[string]*signals.Sink{"pictures": pictures, "shop": shop},
		Coordinators: []core.Inspector{pipeline, l.orders, l.mails.Here()},
		Queues:       []inspect.StoredQueue{l.mails.Inspect()},
		Schedules:    []inspect.Schedules{l.plan},
		Show:         shownItem,
		Sink:         shop, // this sink also gets the signals of the page's actions
	}
	link := pageURL(listener.Addr())
	if allow {
		token := cryptorand.Text()
		opts.View, err = statuspage.Token(token)
		opts.Allow = func(*http.Request, statuspage.Action) bool { return true }
		link += "?token=" + token
	}
	if err != nil {
		return err
	}
	page, err := statuspage.New(opts)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: 5 * time.Second}
	ctx, fail := context.WithCancelCause(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { fail(server.Serve(listener)) })
	fmt.Fprintf(w, "status page at %s, until Ctrl-C\n", link)

	var producers sync.WaitGroup
	producers.Go(func() { l.run(ctx) })
	producers.Go(func() { repeat(ctx, pipeline) })
	producers.Wait()
	fmt.Fprintln(w, "interrupted: what was accepted is finished")

	deadline, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), drain, fmt.Errorf("not drained within %v", drain))
	defer cancel()
	stages := core.InOrder(pipeline, l.plan, l.orders)
	err = errors.Join(stages.Drain(deadline), l.stop(deadline))
	stages.Close()
	printTotals(w, pipeline, l)
	err = errors.Join(err, page.Close(), server.Close(), l.mails.Close())
	parts.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, program.ErrInterrupted) {
		err = errors.Join(err, cause) // of the server
	}
	return err
}

// shownItem is the text of an item on the page. Rounds of the pipeline have their key.
func shownItem(item any) string {
	if o, ok := item.(order); ok {
		return fmt.Sprintf("order %d, takes %v", o.ID, o.Takes)
	}
	return ""
}

// pageURL is the address of the page for a browser of this machine, even if it listens on
// all addresses.
func pageURL(at net.Addr) string {
	host, port, _ := net.SplitHostPort(at.String())
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// newRounds makes the coordinator whose operations are runs of the file pipeline, one at a
// time. Each replaces the results of the previous run.
func newRounds(sink *signals.Sink) (rounds *core.Coordinator[int], remove func() error, err error) {
	images := album()
	dir, err := os.MkdirTemp("", "ephemeral-demo-")
	if err != nil {
		return nil, nil, err
	}
	rounds, err = core.NewCoordinator(func(ctx context.Context, n int) error {
		core.OperationFrom(ctx).SetKey(fmt.Sprint("round ", n))
		return round(ctx, images, dir, filepipeline.Options{Readers: 4, Thumbnailers: 2, Sink: sink})
	}, core.Options{Name: "pipeline", Sink: sink, MaxConcurrency: 1})
	return rounds, func() error { return os.RemoveAll(dir) }, err
}

func round(ctx context.Context, images fs.FS, dir string, opts filepipeline.Options) (err error) {
	out, err := filepipeline.OpenOutput(ctx, dir, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	summary, err := filepipeline.Run(ctx, images, out, opts)
	core.OperationFrom(ctx).Set("summary", summary)
	if summary.Interrupted {
		err = errors.Join(err, context.Cause(ctx))
	}
	return err
}

// repeat runs one round after the other until ctx ends. The last round is still finished. A
// round that fails is shown on the page.
func repeat(ctx context.Context, rounds *core.Coordinator[int]) {
	for n := 1; sleep(ctx, time.Second) == nil; n++ {
		if id, err := rounds.Enqueue(ctx, n); err == nil {
			_ = rounds.Wait(ctx, id)
		}
	}
}

// printTotals prints the results of all accepted work.
func printTotals(w io.Writer, pipeline core.Inspector, l *load) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	defer t.Flush()
	fmt.Fprint(t, "ACCEPTED\tSUCCEEDED\tFAILED\tCANCELLED\t\n")
	for _, c := range []core.Inspector{pipeline, l.orders} {
		s := c.Stats()
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t %s\n", s.Enqueued, s.Succeeded, s.Failed, s.Cancelled, c.Name())
	}
	if s, err := l.mails.Stats(context.Background()); err == nil {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t %s that are kept\n", s.Items, s.Done, s.Dead, s.Cancelled, l.mails.Name())
	}
}
