package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A crawler: work that enqueues more work. Each page is visited once; WaitIdle waits
// until no page is left.
func ExampleCoordinator_WaitIdle() {
	links := map[string][]string{
		"/":         {"/about", "/products"},
		"/about":    {"/"},
		"/products": {"/", "/products/1", "/products/2"},
	}
	var (
		site *core.Coordinator[string]
		seen sync.Map
	)
	visit := func(ctx context.Context, page string) error {
		for _, link := range links[page] {
			if _, old := seen.LoadOrStore(link, true); old {
				continue
			}
			if _, err := site.Enqueue(ctx, link); err != nil { // the body's own coordinator always accepts an item
				return err
			}
		}
		return nil
	}
	site = core.Must(core.NewCoordinator(visit, core.Options{MaxConcurrency: 4}))
	defer site.Close()

	ctx := context.Background()
	seen.Store("/", true)
	core.Must(site.Enqueue(ctx, "/"))
	if err := site.WaitIdle(ctx); err != nil {
		panic(err)
	}
	fmt.Println(site.Stats().Succeeded, "pages")
	// Output:
	// 5 pages
}

// An operation that waits long gives its slot to others meanwhile. Here one slot is
// enough for an order that waits for its approval, and the approval itself.
func ExampleOperation_Suspend() {
	orders := core.Must(core.NewCoordinator(func(ctx context.Context, order string) error {
		op := core.OperationFrom(ctx)
		if order == "approve" {
			fmt.Println("approved")
			op.Raise("approved")
			return nil
		}
		err := op.Suspend(ctx, "the approval", func(ctx context.Context) error {
			_, err := op.Sink().WaitFor(ctx, "approved")
			return err
		})
		if err != nil {
			return err
		}
		fmt.Println("shipping", order)
		return nil
	}, core.Options{MaxConcurrency: 1}))
	defer orders.Close()

	ctx := context.Background()
	for _, item := range []string{"order 1", "approve"} {
		core.Must(orders.Enqueue(ctx, item))
	}
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// approved
	// shipping order 1
}

// A body that ignores its context is found, and says where it is.
func ExampleStuckOperation() {
	begun, block := make(chan struct{}), make(chan struct{})
	mails := core.Must(core.NewCoordinator(func(context.Context, string) error {
		close(begun)
		<-block
		return nil
	}, core.Options{Name: "mails", StuckAfterCancel: 10 * time.Millisecond}))
	defer mails.Close()
	defer core.Stuck.Subscribe(mails.Sink(), func(s signals.Signal, stuck core.StuckOperation) {
		fmt.Println(s.Source+":", stuck.Reason)
		fmt.Println("the stack names the function that blocks:", strings.Contains(stuck.Stack, "ExampleStuckOperation"))
		fmt.Println("stuck:", mails.Stats().Stuck)
		close(block)
	})()

	ctx := context.Background()
	id := core.Must(mails.Enqueue(ctx, "to ada"))
	<-begun
	mails.Cancel(id, errors.New("nobody waits for it"))
	if err := mails.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// mails: its body has not returned after the end of its context (nobody waits for it)
	// the stack names the function that blocks: true
	// stuck: 1
}
