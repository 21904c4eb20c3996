package embedded_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/mesh"
	"github.com/ephemeralgo/ephemeral/atoms/mesh/embedded"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Two nodes, here in one process and on one server: what one holds stands on the other.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	server := core.Must(embedded.New(ctx, embedded.Options{}))
	defer server.Close()
	here, there := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
	shop1 := core.Must(mesh.Join(ctx, server.Conn(), here, mesh.Options{Cluster: "shop", Name: "shop-1", Share: "gateway.*"}))
	defer shop1.Close()
	shop2 := core.Must(mesh.Join(ctx, server.Conn(), there, mesh.Options{Cluster: "shop", Name: "shop-2", Share: "gateway.*"}))
	defer shop2.Close()

	here.WaitGone(ctx, mesh.SignalAlone) // shop-2 is heard
	release := here.Hold("gateway.down", "acme", 0)
	if err := shop1.Flush(ctx); err != nil { // every node has it
		panic(err)
	}
	for s := range there.Sense(signals.Query{Pattern: "gateway.*"}) {
		fmt.Println(s.Name, s.Key, "held by", s.Node)
	}
	release()
	fmt.Println(there.WaitGone(ctx, "gateway.*"))
	// Output:
	// gateway.down acme held by shop-1
	// <nil>
}
