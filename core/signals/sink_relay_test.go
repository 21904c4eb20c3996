package signals_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// relayTo relays the signals of s, and returns the words of what happens.
func relayTo(s *signals.Sink, pattern string) (got *[]string, cancel func()) {
	got = new([]string)
	cancel = s.Relay(pattern, func(signal signals.Signal, lease time.Duration) func() {
		*got = append(*got, strings.TrimSpace(fmt.Sprint(signal.Name, " ", signal.Key, " ", lease)))
		return func() { *got = append(*got, "end "+signal.Name) }
	})
	return got, cancel
}

func TestRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{Leaf: "a.leaf"}})
		s.Raise("a.before")
		standing := s.Hold("a.standing", "k", time.Minute)
		s.Hold("other", "", 0)
		time.Sleep(10 * time.Second)
		got, cancel := relayTo(s, "a.*")
		coretest.Check(t, s.RaiseKey("a.raised", "x"), "not raised")
		s.Raise("a.leaf")
		release := s.Hold("a.held", "", 0)
		s.Hold("a.lease", "", time.Second)
		time.Sleep(time.Second)
		s.Stats()
		release()
		release()
		standing()
		wantNames(t, "relayed", *got, "a.standing k 50s", "a.raised x 0s", "a.held  0s", "a.lease  1s", "end a.held", "end a.standing")

		*got = nil
		again := s.Hold("a.again", "", 0)
		cancel()
		cancel()
		again()
		s.Raise("a.late")
		wantNames(t, "at cancel", *got, "a.again  0s", "end a.again")
	})
}

// A signal that is released while it is relayed gets its end. Panics are counted, and have no
// other effect.
func TestRelayThatReleasesAndPanics(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	var ended int
	release := s.Hold("a", "", 0)
	s.Relay("a", func(signals.Signal, time.Duration) func() {
		release()
		return func() { ended++; panic("ended") }
	})
	s.Relay("b", func(signals.Signal, time.Duration) func() { panic("out") })
	s.Hold("b", "", 0)()
	checkEqual(t, "ended, panics and held", words(ended, s.Stats().Panics, s.Stats().Held), "1 2 0")
}

func TestImport(t *testing.T) {
	here, second := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
	here.Forward(second, "*")
	got, _ := relayTo(here, "*")
	more, _ := relayTo(second, "*")
	m := here.Monitor("file.*", 0)

	there := signals.Signal{Name: "file.saved", Key: "k", Source: "shop", Operation: 7}.With(file{"a", 1}, "first", "second")
	_, ok := here.Import(there, "node-2")
	s := newest(t, second, "file.saved")
	f, isFile := fileSaved.From(s)
	checkEqual(t, "imported", words(ok, isFile, f.Path, s.Node, s.Operation, s.Source, s.Key), "true true a node-2 0 shop k")
	coretest.Check(t, slices.Equal(s.Path(), []string{"first", "second", "file.saved"}) && m.Count() == 1, "path %q, count %d", s.Path(), m.Count())
	data, err := json.Marshal(s)
	var back signals.Signal
	checkError(t, "Unmarshal", json.Unmarshal(data, &back), err)
	signals.NewSink(signals.SinkOptions{}).Restore(slices.Values([]signals.Signal{back}))
	coretest.Check(t, back.Node == "node-2" && strings.Contains(s.LogValue().String(), "node-2"), "JSON has node %q", back.Node)

	held := signals.Signal{Name: "busy", Held: true}
	release, ok := here.Import(held, "node-2")
	checkEqual(t, "held", [3]bool{ok, here.Has("busy"), second.Has("busy")}, [3]bool{true, true, true})
	release()
	release()
	checkEqual(t, "held after the release", [2]bool{here.Has("busy"), second.Has("busy")}, [2]bool{})
	wantNames(t, "relayed", append(*got, *more...))

	_, ok = here.Import(signals.Signal{}, "node-2")
	coretest.Check(t, !ok, "imported without a name")
	long := signals.Signal{Name: "deep"}.With(nil, strings.Split(strings.Repeat("x ", 11)+"x", " ")...)
	_, ok = here.Import(long, "node-2")
	checkEqual(t, "imported beyond the depth", words(ok, here.Stats().Blocked), "false 1")
}
