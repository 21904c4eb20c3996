package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Steps of one order run one after the other, in the order in which they came. Steps of
// different orders run side by side.
func ExampleNewKeyedCoordinator() {
	type step struct{ order, what string }
	var (
		mu   sync.Mutex
		done = make(map[string][]string)
	)
	c := core.Must(core.NewKeyedCoordinator(
		func(s step) string { return s.order },
		func(ctx context.Context, s step) error {
			mu.Lock()
			defer mu.Unlock()
			done[s.order] = append(done[s.order], s.what)
			return nil
		},
		core.Options{MaxConcurrency: 16}))
	defer c.Close()

	ctx := context.Background()
	for _, what := range []string{"created", "paid", "shipped"} {
		for _, order := range []string{"order-1", "order-2"} {
			core.Must(c.Enqueue(ctx, step{order, what}))
		}
	}
	if err := c.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println(done["order-1"])
	fmt.Println(done["order-2"])
	// Output:
	// [created paid shipped]
	// [created paid shipped]
}

// When there is room for another operation, the highest lane with pending operations is
// next.
func ExampleCoordinator_Lane() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, job string) error {
		fmt.Println(job)
		return nil
	}, core.Options{
		MaxConcurrency: 1,
		Lanes:          []core.Lane{{Name: "hot"}, {Name: "normal"}, {Name: "slow"}},
	}))
	defer c.Close()
	hot, slow := c.Lane("hot"), c.Lane("slow")

	c.Pause() // until all are there
	slow.TryEnqueue(context.Background(), "rebuild the index")
	c.TryEnqueue(context.Background(), "send a mail") // without a lane: "normal"
	hot.TryEnqueue(context.Background(), "show a page")
	_, err := c.Lane("lukewarm").TryEnqueue(context.Background(), "never")
	fmt.Println(errors.Is(err, core.ErrUnknownLane))

	c.Resume()
	if err := c.Drain(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// true
	// show a page
	// send a mail
	// rebuild the index
}

// One video at a time is encoded, so that mails always find a free slot.
func ExampleCoordinator_Class() {
	sent := make(chan bool)
	c := core.Must(core.NewCoordinator(func(ctx context.Context, job string) error {
		if job == "mail" {
			defer close(sent)
		} else {
			<-sent // is this slow
		}
		fmt.Println(job)
		return nil
	}, core.Options{
		MaxConcurrency: 2,
		Lanes:          []core.Lane{{Name: "hot"}, {Name: "normal"}},
		Classes:        []core.Class{{Name: "video", Limit: 1}},
	}))
	video := c.Class("video")
	video.TryEnqueue(context.Background(), "first video")
	video.TryEnqueue(context.Background(), "second video")
	video.Lane("hot").TryEnqueue(context.Background(), "video that somebody waits for")
	c.TryEnqueue(context.Background(), "mail")
	var s core.ClassStats = c.Stats().Classes[0]
	fmt.Println(s.Name, "limit", s.Limit)
	if err := c.Drain(context.Background()); err != nil {
		panic(err)
	}
	// Unordered output:
	// video limit 1
	// mail
	// first video
	// video that somebody waits for
	// second video
}

// Lanes from a line of configuration.
func ExampleParseLanes() {
	lanes := core.Must(core.ParseLanes("hot:4, normal, slow:2"))
	for _, l := range lanes {
		fmt.Println(l.Name, l.Limit)
	}
	_, err := core.ParseLanes("hot:4, slow:none")
	fmt.Println(err)
	// Output:
	// hot 4
	// normal 0
	// slow 2
	// core: lane 2 of "hot:4, slow:none": limit "none" must be a number from 1 up
}

// Operations that have results: wait for one by id, or with Do in one call.
func ExampleNewResultCoordinator() {
	c := core.Must(core.NewResultCoordinator(func(ctx context.Context, word string) (int, error) {
		if word == "" {
			return 0, errors.New("nothing to measure")
		}
		return len(word), nil
	}, core.Options{MaxConcurrency: 4}))
	defer c.Close()
	ctx := context.Background()

	id := core.Must(c.Enqueue(ctx, "ephemeral"))
	fmt.Println(c.Wait(ctx, id))
	fmt.Println(c.Do(ctx, "short"))
	fmt.Println(c.Do(ctx, ""))
	// Output:
	// 9 <nil>
	// 5 <nil>
	// 0 nothing to measure
}

// Fan out, then in. A Future has its result, even if the window has forgotten the
// operation.
func ExampleResultCoordinator_Submit() {
	c := core.Must(core.NewResultCoordinator(func(ctx context.Context, n int) (int, error) {
		return n * n, nil
	}, core.Options{MaxTracked: 1}))
	defer c.Close()
	ctx := context.Background()

	var squares []*core.Future[int]
	for n := range 5 {
		f := core.Must(c.Submit(ctx, n))
		squares = append(squares, f)
	}
	sum := 0
	for _, f := range squares {
		square := core.Must(f.Wait(ctx))
		sum += square
	}
	fmt.Println(sum)
	// Output: 30
}

// The results that are in the window, each with its operation.
func ExampleResultCoordinator_Results() {
	c := core.Must(core.NewKeyedResultCoordinator(
		func(line string) string { user, _, _ := strings.Cut(line, " "); return user },
		func(ctx context.Context, line string) (int, error) { return len(strings.Fields(line)) - 1, nil },
		core.Options{MaxConcurrency: 1}))
	defer c.Close()

	for _, line := range []string{"ada buys a book", "bob looks", "ada pays"} {
		core.Must(c.TryEnqueue(context.Background(), line))
	}
	if err := c.Flush(context.Background()); err != nil {
		panic(err)
	}
	for op, words := range c.Results(core.OperationQuery{Key: "ada"}) {
		fmt.Println(op.Key, op.Status, words)
	}
	// Output:
	// ada succeeded 3
	// ada succeeded 1
}

// Ask why an operation waits. An Explanation as a whole prints as one line; here
// are its reasons, one by one.
func ExampleCoordinator_Explain() {
	sink := signals.NewSink(signals.SinkOptions{})
	c := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil },
		core.Options{Sink: sink, DeferOn: "update.*", MaxDefer: -1}))
	defer c.Close()

	release := sink.Hold("update.in-progress", "prices", time.Hour)
	c.Pause()
	core.Must(c.TryEnqueue(context.Background(), "first"))
	id := core.Must(c.TryEnqueue(context.Background(), "second"))
	why, ok := c.Explain(id)
	fmt.Println(ok, why.Status)
	for _, r := range why.Reasons {
		fmt.Println(r)
	}

	release()
	c.Resume()
	if err := c.Wait(context.Background(), id); err != nil {
		panic(err)
	}
	why, _ = c.Explain(id)
	fmt.Println(why.Status, len(why.Reasons))
	// Output:
	// true pending
	// the coordinator is paused
	// deferred because of held signal "update.in-progress" for "prices"
	// 1 item before it goes first
	// succeeded 0
}

// Work through a list, several keys at once, and one item of a key after the other.
func ExampleForEachKeyed() {
	type transfer struct {
		account string
		amount  int
	}
	transfers := []transfer{{"ada", 100}, {"bob", 50}, {"ada", -30}, {"bob", -40}, {"ada", -80}}

	var mu sync.Mutex
	balance := make(map[string]int)
	err := core.ForEachKeyed(context.Background(), slices.Values(transfers),
		func(t transfer) string { return t.account },
		func(ctx context.Context, t transfer) error {
			mu.Lock()
			defer mu.Unlock()
			if balance[t.account]+t.amount < 0 {
				return fmt.Errorf("%s cannot pay %d", t.account, -t.amount)
			}
			balance[t.account] += t.amount
			return nil
		}, core.Options{MaxConcurrency: 2})
	fmt.Println(balance["ada"], balance["bob"])
	fmt.Println(err)
	// Output:
	// 70 10
	// ada cannot pay 80
}

// A status page over all coordinators of a program, whatever they carry.
func ExampleInspector() {
	page := func(all ...core.Inspector) {
		for _, c := range all {
			s := c.Stats()
			fmt.Printf("%s: %d running, %d pending, %d failed\n", c.Name(), s.Running, s.Pending, s.Failed)
			for op := range c.Operations(core.OperationQuery{Status: core.StatusPending | core.StatusFailed}) {
				fmt.Printf("  %s %s", op.Key, op.Status)
				if op.Err != nil {
					fmt.Printf(": %v", op.Err)
				}
				if why, _ := c.Explain(op.ID); len(why.Reasons) > 0 {
					fmt.Printf(": %v", why.Reasons[0])
				}
				fmt.Println()
			}
		}
	}

	self := func(s string) string { return s }
	mails := core.Must(core.NewKeyedCoordinator(self, func(_ context.Context, to string) error {
		if to == "nobody" {
			return errors.New("no such address")
		}
		return nil
	}, core.Options{Name: "mails"}))
	defer mails.Close()
	lengths := core.Must(core.NewKeyedResultCoordinator(self, func(_ context.Context, s string) (int, error) {
		return len(s), nil
	}, core.Options{Name: "lengths"}))
	defer lengths.Close()

	for _, to := range []string{"ada", "nobody"} {
		core.Must(mails.TryEnqueue(context.Background(), to))
	}
	if err := mails.Flush(context.Background()); err != nil {
		panic(err)
	}
	lengths.Pause()
	core.Must(lengths.TryEnqueue(context.Background(), "ephemeral"))
	page(mails, lengths)
	// Output:
	// mails: 0 running, 0 pending, 1 failed
	//   nobody failed: no such address
	// lengths: 0 running, 1 pending, 0 failed
	//   ephemeral pending: the coordinator is paused
}
