// Command durable kills processes that share a queue of atoms/durable, and shows that nothing is lost.
//
// Usage:
//
//	go run ./demo/durable [-items N]
//
// The queue is in a SQLite file, or in the PostgreSQL of EPHEMERAL_POSTGRES_DSN.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
)

const (
	workers = 3
	keys    = 20
	takes   = 60 * time.Millisecond // an item
)

// job is the N-th item of a key, from 1.
type job struct {
	Key string
	N   int
}

func (j job) key() string { return j.Key }

// queueOptions are the options of the queue in all processes.
func queueOptions(node string) durable.Options {
	return durable.Options{Name: "demo", Node: node, MaxConcurrency: 4, MaxAttempts: -1, Lease: time.Second, Poll: 200 * time.Millisecond, Backoff: 50 * time.Millisecond}
}

func main() { program.Main(run) }

func run(ctx context.Context, args []string, stdout, stderr *os.File) int {
	fs, drain := program.NewFlags("durable", stderr)
	items := fs.Int("items", 1000, "enqueue `N` items")
	node := fs.String("worker", "", "be the worker `NAME` of -at; the demo starts its workers itself")
	at := fs.String("at", "", "the `PLACE` of a worker")
	if status, ok := program.Parse(fs, args); !ok {
		return status
	}
	program.ExitAfter(ctx, *drain, stderr)
	var err error
	switch {
	case fs.NArg() > 0 || *items <= 0:
		err = errors.New("durable takes no arguments, and -items must be positive")
	case *node != "":
		err = work(ctx, *at, *node)
	default:
		var v verdict
		if v, err = killing(ctx, *items, stdout, stderr); err == nil {
			v.print(stdout)
			switch {
			case v.broken():
				return program.Failures
			case v.waiting > 0:
				return program.Interrupted
			}
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return program.Unusable
	}
	return program.OK
}

// work runs items until the standard input ends, which the kernel closes if the demo is killed.
func work(ctx context.Context, at, node string) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	p, err := openPlace(context.WithoutCancel(ctx), at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(false)) }()
	q, err := durable.New(p.store, job.key, func(ctx context.Context, j job) error {
		select {
		case <-time.After(takes):
			return p.effect(ctx, j)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, queueOptions(node))
	if err != nil {
		return err
	}
	defer q.Close()
	return q.Run(ctx)
}

// killing enqueues items, and kills one worker after the other until all items are done or
// ctx ends. Then it returns the verdict.
func killing(ctx context.Context, items int, stdout, stderr io.Writer) (v verdict, err error) {
	interrupted := ctx.Done()
	ctx = context.WithoutCancel(ctx) // running work is finished
	at, err := newPlace()
	if err != nil {
		return v, err
	}
	p, err := openPlace(ctx, at)
	if err != nil {
		return v, errors.Join(err, os.RemoveAll(at))
	}
	defer func() { err = errors.Join(err, p.close(true)) }()
	q, err := durable.New(p.store, job.key, func(context.Context, job) error { return nil }, queueOptions("demo"))
	if err != nil {
		return v, err
	}
	defer q.Close()
	var team [workers]*worker
	for i := range team {
		if team[i], err = startWorker(at, fmt.Sprint("worker-", i+1), stderr); err != nil {
			return v, err
		}
		defer func() { team[i].end() }() // ends the workers if something has failed; otherwise they have ended already
	}
	fmt.Fprintf(stdout, "%d workers, %d items of %d keys, in %s\n", workers, items, keys, p.name)
	for n := 0; n < items; n += keys { // one item of each key
		var some []job
		for i := n; i < min(items, n+keys); i++ {
			some = append(some, job{fmt.Sprint("key-", i%keys), i/keys + 1})
		}
		if _, err := q.EnqueueAll(ctx, some); err != nil {
			return v, err
		}
	}
	for start := time.Now(); ; {
		s, err := q.Stats(ctx)
		if err != nil {
			return v, err
		}
		victim := rand.IntN(workers)
		fmt.Fprintf(stdout, "%4.1fs  %4d done, %2d running", time.Since(start).Seconds(), s.Done, s.Running)
		if s.Done == s.Items {
			fmt.Fprintln(stdout)
			break
		}
		fmt.Fprintf(stdout, "; kill -9 %s, start it again\n", team[victim].name)
		v.kills++
		if err := team[victim].killAndRestart(); err != nil {
			return v, err
		}
		select {
		case <-time.After(800*time.Millisecond + rand.N(400*time.Millisecond)):
			continue
		case <-interrupted:
			fmt.Fprintln(stdout, "interrupted: the workers finish what they have begun")
		}
		break
	}
	for _, w := range team {
		if err := w.end(); err != nil {
			return v, err
		}
	}
	return v, v.read(ctx, q, p, items)
}
