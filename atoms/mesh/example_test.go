package mesh_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	nats "github.com/nats-io/nats.go"

	"github.com/ephemeralgo/ephemeral/atoms/mesh"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// PaymentDeclined travels with its payload.
var PaymentDeclined = signals.NewKind[string]("payment.declined")

func ExampleJoin() {
	ctx := context.Background()
	conn, err := nats.Connect("nats://127.0.0.1:4222")
	if err != nil {
		fmt.Println("no server:", err)
		return
	}
	defer conn.Close()
	sink := signals.NewSink(signals.SinkOptions{})
	m := core.Must(mesh.Join(ctx, conn, sink, mesh.Options{
		Cluster: "shop",
		Share:   "payment.*, gateway.*, update.*", // all else stays in this process
		Carry:   []mesh.Carrier{mesh.Carry(PaymentDeclined)},
	}))
	defer m.Close() // what this node holds ends everywhere

	declined := sink.Monitor("payment.declined", time.Minute) // counts those of all nodes
	payments := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil },
		core.Options{Sink: sink, CancelOn: "gateway.down, mesh.alone"})) // raised or held on any node
	defer payments.Close()

	release := sink.Hold("update.in-progress", "db", 0) // until released, or this process is gone
	defer release()
	if err := m.Flush(ctx); err != nil { // every node has it
		panic(err)
	}
	if declined.Count() > 100 {
		sink.Hold("gateway.down", "acme", time.Minute)
	}
}

// What a page or a log says about the mesh.
func ExampleMesh_Nodes() {
	report := func(m *mesh.Mesh, err error) {
		var missed *mesh.MissedError
		if errors.As(err, &missed) { // of Flush
			fmt.Println("some nodes have missed signals:", missed.Nodes)
		}
		for _, n := range m.Nodes() {
			showNode(n)
		}
		var s mesh.Stats = m.Stats()
		var lost mesh.Losses = s.Losses
		fmt.Println(s.Sent, "sent,", s.Raised, "of others raised,", lost.Missed+lost.Late, "lost")
	}
	_ = report
}

func showNode(n mesh.Node) {
	fmt.Println(n.Name, "holds", n.Held, "and was heard", time.Since(n.Seen), "ago")
}
