package coretest

import (
	"testing"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// NothingLeft runs use, which makes something that listens to the sink and then ends it.
// It checks that the sink has as many handlers, monitors and held facts after use as
// before.
func NothingLeft(t testing.TB, sink *signals.Sink, use func()) {
	t.Helper()
	type leftovers struct{ handlers, monitors, held int }
	count := func() leftovers {
		s := sink.Stats()
		return leftovers{s.Handlers, s.Monitors, s.Held}
	}
	before := count()
	use()
	if after := count(); after != before {
		t.Errorf("left on the sink: %+v, had %+v", after, before)
	}
}
