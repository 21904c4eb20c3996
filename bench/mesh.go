package bench

import (
	"context"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/mesh"
	"github.com/ephemeralgo/ephemeral/atoms/mesh/embedded"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// meshRows measure two nodes on an embedded server: what a raise costs if the signal is not
// shared, and if it is; all of it, from the raise on one node to the raise on the other; and a
// signal that is held on one node, seen on the other, released, and seen to be gone.
func meshRows() []Row {
	bare := func() *signals.Sink { return fullSink(signals.SinkOptions{Capacity: small}) }
	return []Row{
		{Name: "raise/signal=other", MaxAllocs: -1, Sides: []Side{
			{"ours", 0, func() Body { return onMesh("shared.*", raiseNames) }},
			onSink("no-mesh", 1.05, bare, raiseNames),
		}},
		{Name: "raise/signal=shared", MaxAllocs: -1, Sides: []Side{
			{"ours", 0, func() Body { return onMesh("*", raiseNames) }},
			spin("1us", 1, time.Microsecond),
		}},
		{Name: "end-to-end", MaxAllocs: -1, Sides: []Side{
			{"ours", 0, func() Body { return throughMesh() }},
			spin("20us", 1, 20*time.Microsecond),
		}},
		{Name: "hold-and-release", MaxAllocs: -1, Sides: []Side{
			{"ours", 0, func() Body { return heldOnMesh() }},
			spin("5ms", 1, 5*time.Millisecond),
		}},
	}
}

// onMesh is a node beside another one.
func onMesh(share string, run func(s *signals.Sink, n int)) Body {
	one, _, end := twoNodes(share)
	return Body{Run: func(n int) { run(one.sink, n) }, Close: end}
}

// throughMesh raises as many signals as may wait, and then waits until the other node has them.
func throughMesh() Body {
	one, two, end := twoNodes("*")
	return Body{Close: end, Run: func(n int) {
		before := two.Stats()
		for i := range n {
			one.sink.Raise(name(i))
			if i%10_000 == 9_999 || i == n-1 {
				check(one.Flush(context.Background()))
			}
		}
		if after := two.Stats(); after.Raised-before.Raised != uint64(n) {
			panic(core.StatsString(after))
		}
	}}
}

// heldOnMesh holds and releases, and each time waits until the other node has seen it.
func heldOnMesh() Body {
	one, two, end := twoNodes("*")
	return Body{Close: end, Run: func(n int) {
		for i := range n {
			release := one.sink.Hold(name(i), "", 0)
			_, err := two.sink.WaitFor(context.Background(), name(i))
			check(err)
			release()
			check(two.sink.WaitGone(context.Background(), name(i)))
		}
	}}
}

type node struct {
	*mesh.Mesh
	sink *signals.Sink
}

func twoNodes(share string) (one, two node, end func()) {
	server, err := embedded.New(context.Background(), embedded.Options{})
	check(err)
	join := func(name string) node {
		sink := signals.NewSink(signals.SinkOptions{Capacity: small})
		m, err := mesh.Join(context.Background(), server.Conn(), sink, mesh.Options{Cluster: "bench", Name: name, Share: share, MaxLate: -1, MaxRate: -1})
		check(err)
		return node{m, sink}
	}
	one, two = join("one"), join("two")
	check(one.sink.WaitGone(context.Background(), mesh.SignalAlone))
	return one, two, func() {
		one.Close()
		two.Close()
		server.Close()
	}
}
