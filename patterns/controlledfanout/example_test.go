package controlledfanout_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/controlledfanout"
)

// One tenant has three requests: two of them may run. The other tenant does not wait.
func Example() {
	started, finish := make(chan struct{}, 4), make(chan struct{})
	tenant := func(request string) string { name, _, _ := strings.Cut(request, "/"); return name }
	tenants := core.Must(controlledfanout.New(tenant, func(context.Context, string) error {
		started <- struct{}{}
		<-finish
		return nil
	}, core.Options{MaxConcurrency: 100, MaxPerKey: 2}))
	defer tenants.Close()

	ctx := context.Background()
	for _, request := range []string{"acme/1", "acme/2", "acme/3", "globex/1"} {
		core.Must(tenants.Enqueue(ctx, request))
	}
	for range 3 {
		<-started
	}
	for op := range tenants.Operations(core.OperationQuery{Status: core.StatusPending, Key: "acme"}) {
		why, _ := tenants.Explain(op.ID)
		fmt.Println(op.Item, "waits:", why.Reasons[0].Kind, why.Reasons[0].Key)
	}
	close(finish)
	if err := tenants.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println(tenants.Stats().Succeeded, "done")
	// Output:
	// acme/3 waits: key acme
	// 4 done
}
