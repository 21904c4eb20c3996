package coretest

import (
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
)

func TestWatch(t *testing.T) {
	var w *Watcher
	sink := core.NewSink(core.SinkOptions{})
	check := func(want string, fn func()) {
		t.Helper()
		r := &recorder{TB: t}
		w.t = r
		fn()
		if got := r.text(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got failure %q, want it to contain %q", got, want)
		}
	}
	w = Watch(t, sink, "order.*")
	raise := func(names ...string) {
		for _, name := range names {
			sink.Raise(name)
		}
	}

	check("", func() { w.None() })
	raise("order.placed", "noise", "order.paid", "order.sent")
	check("", func() { w.Expect("order.placed", "order.sent") })
	check("", func() { w.None() })

	raise("order.placed", "order.paid")
	check("", func() { w.Expect("order.p*") })
	check("got: order.paid\nwant: (none)", func() { w.None() })
	check("", func() { w.None() }) // reported once

	raise("order.paid", "order.placed")
	check(`"order.paid" was not raised in this order`, func() { w.Expect("order.placed", "order.paid") })
	check("", func() { w.None() })

	raise("order.placed", "order.paid")
	check("got: order.placed order.paid\nwant: order.placed, exactly", func() { w.ExpectExactly("order.placed") })
	raise("order.placed", "order.paid")
	check("", func() {
		got := w.ExpectExactly("order.placed", "order.paid")
		Check(t, len(got) == 2 && got[1].Name == "order.paid", "got %v, want the two signals", got)
	})
}

// The recording ends with the test.
func TestWatchEndsWithTest(t *testing.T) {
	sink := core.NewSink(core.SinkOptions{})
	var w *Watcher
	record(t, func(t testing.TB) { w = Watch(t, sink, "*") })
	sink.Raise("too late")
	w.t = t
	w.None()
}
