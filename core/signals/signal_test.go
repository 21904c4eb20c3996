package signals_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// sensed lists the names of the signals that q selects, in order.
func sensed(from signals.Sensor, q signals.Query) []string {
	var names []string
	for s := range from.Sense(q) {
		names = append(names, s.Name)
	}
	return names
}

// newest returns the newest signal of that name.
func newest(t *testing.T, from signals.Sensor, name string) signals.Signal {
	t.Helper()
	all := slices.Collect(from.Sense(signals.Query{Pattern: name}))
	if len(all) == 0 {
		t.Fatalf("no signal %q", name)
	}
	return all[len(all)-1]
}

func wantNames(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	coretest.Check(t, slices.Equal(got, want), "%s: got %q, want %q", what, got, want)
}

// A signal without a cause has depth 0.
func TestSignalDepthAndPath(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	check := func(name string, depth int, path ...string) signals.Signal {
		t.Helper()
		got := newest(t, s, name)
		coretest.Check(t, got.Depth() == depth && slices.Equal(got.Path(), path), "%s: got depth %d, path %q, want %d, %q", name, got.Depth(), got.Path(), depth, path)
		return got
	}
	s.Raise("a")
	a := check("a", 0, "a")
	s.Because(a).Raise("b")
	b := check("b", 1, "a", "b")
	s.Because(b).Raise("c")
	check("c", 2, "a", "b", "c")
	s.Because(b).Raise("d") // chains branch
	check("d", 2, "a", "b", "d")
	s.Because(a).Because(b).Raise("e") // the nearest cause counts
	check("e", 2, "a", "b", "e")

	inBody(t, core.Options{Sink: s, MaxTracked: 5}, func(_ context.Context, o *core.Operation, _ *core.Coordinator[coretest.Body]) {
		o.Raise("root")
		o.Because(b).Raise("f")
		check("root", 0, "root")
		check("f", 2, "a", "b", "f")
	})
	path := b.Path()
	path[0] = "changed"
	check("b", 1, "a", "b") // a copy was changed
}

func TestSignalArg(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		ok         bool
	}{
		{"rate-limit:5000ms", "5000ms", true},
		{"http.error:429", "429", true},
		{"at:12:30", "12:30", true},
		{"empty:", "", true},
		{":x", "x", true},
		{"none", "", false},
		{"", "", false},
	} {
		got, ok := (signals.Signal{Name: tt.name}).Arg()
		coretest.Check(t, got == tt.want && ok == tt.ok, "Arg of %q: got %q, %v, want %q, %v", tt.name, got, ok, tt.want, tt.ok)
	}
}

func TestSignalJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		s.RaiseKey("plain", "k,\"é")
		s.Because(newest(t, s, "plain")).Raise("second")
		s.Because(newest(t, s, "second")).Raise("third")
		s.Hold("held", "h", 0)
		signals.NewKind[int]("typed").Raise(s, "", 42)

		var back signals.Signal
		written, err := json.Marshal(newest(t, s, "typed"))
		checkError(t, "Unmarshal", errors.Join(err, json.Unmarshal(written, &back)), nil)
		checkEqual(t, "a payload that comes back", back.Payload(), nil)

		text, _ := json.Marshal(newest(t, s, "third"))
		for _, want := range []string{`"name":"third"`, `"causes":["plain","second"]`, `"seq":3`} {
			coretest.Check(t, strings.Contains(string(text), want), "got %s, want it to contain %s", text, want)
		}
		for _, empty := range []string{"key", "operation", "source", "held"} {
			coretest.Check(t, !strings.Contains(string(text), empty), "got %s, want no %q, which is empty", text, empty)
		}
	})
}

func TestSignalJSONRefusesBadInput(t *testing.T) {
	kept := signals.Signal{Name: "kept"}
	for _, text := range []string{`{"name":5}`, `[]`, `{"time":"yesterday"}`, `{"operation":-1}`} {
		s := kept
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s: got no error", text)
		}
		coretest.Check(t, s.Name == "kept", "%s: changed the signal to %v", text, s)
	}
}

func TestSignalLogValue(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	s.RaiseKey("a", "k")
	s.Because(newest(t, s, "a")).Raise("b")
	s.Hold("h", "", 0)
	for name, want := range map[string]string{"a": `x.name=a x.key=k`, "b": `x.name=b x.path="[a b]"`, "h": `x.name=h x.held=true`} {
		checkEqual(t, "logged", logged(newest(t, s, name)), want)
	}
}

// A coordinator takes the same queries as a sink; for those of a sink, see TestSinkModel.
func TestQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		c := bodies(t, core.Options{Name: "worker", Sink: s})
		defer c.Close()

		id := enqueue(t, c, raise("a.x"))
		time.Sleep(2 * time.Second)
		s.RaiseKey("b", "k1")

		wantNames(t, "coordinator", sensed(c, signals.Query{}), "a.x")
		wantNames(t, "coordinator, key", sensed(c, signals.Query{Key: "k1"}))
		wantNames(t, "coordinator, within", sensed(c, signals.Query{Within: time.Second}))
		wantNames(t, "coordinator, exactly within", sensed(c, signals.Query{Within: 2 * time.Second}), "a.x")
		wantNames(t, "coordinator, operation", sensed(c, signals.Query{Operation: id}), "a.x")
		wantNames(t, "coordinator, other operation", sensed(c, signals.Query{Operation: id + 1000}))
		wantNames(t, "coordinator, source", sensed(c, signals.Query{Source: "other"}))
	})
}
