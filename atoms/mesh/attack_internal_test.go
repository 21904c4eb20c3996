package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	nats "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A payload that is nested as deeply as JSON permits is readable alone, and not in a message. It hides no other signal.
func TestDeepPayload(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		deep := signals.NewKind[json.RawMessage]("a.deep")
		opts := Options{Carry: []Carrier{Carry(deep)}}
		one, two := e.join("one", opts), e.join("two", opts)
		defer closeAll(one, two)
		settle()
		nested := json.RawMessage(strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999))
		deep.Hold(one.sink, "", nested, 0)
		one.sink.Hold("a.held", "", 0)
		deep.Raise(one.sink, "", nested)
		one.sink.Raise("a.fact")
		var missed *MissedError
		assert.ErrorAs(t, one.Flush(t.Context()), &missed)
		assert.ElementsMatch(t, []string{"a.held:", "a.fact:"}, two.take())
		assert.EqualValues(t, 2, one.Stats().Unsent)
	})
}

// A function of OnWake that panics stops nothing.
func TestWakePanics(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{})
		defer closeAll(one, two)
		woken := 0
		for _, n := range []*node{one, two} {
			n.OnWake("orders", func() { woken++; panic("on purpose") })
		}
		one.Wake("orders")
		settle()
		assert.Equal(t, 2, woken)
	})
}

// denying is a connection whose server denies what was permitted at Join.
type denying struct {
	wire
	err *error
}

func (d denying) LastError() error { return *d.err }

// What the server denies later is counted and signalled, and only once.
func TestDeniedLater(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		last, sink := errors.New("of another"), signals.NewSink(signals.SinkOptions{})
		m, err := join(t.Context(), denying{wire{e, "one"}, &last}, sink, Options{Cluster: "test", Name: "one", Share: "a.*", Lease: lease})
		require.NoError(t, err)
		defer m.Close()
		time.Sleep(lease)
		assert.False(t, sink.Has(Unsent.Name()))
		m.do(func() {
			last = fmt.Errorf("%w: to %q", nats.ErrPermissionViolation, m.subject(topicState, m.table.run))
		})
		time.Sleep(2 * lease)
		assert.Equal(t, 1, sink.Count(Unsent.Name()))
		assert.EqualValues(t, 1, m.Stats().Unsent)
	})
}

// sunk is a connection to nobody, which keeps what was sent.
type sunk struct {
	sent func(subject string, data []byte)
}

func (s sunk) Publish(subject string, data []byte) error { s.sent(subject, data); return nil }
func (sunk) Subscribe(string, nats.MsgHandler) (*nats.Subscription, error) {
	return new(nats.Subscription), nil
}
func (sunk) FlushWithContext(context.Context) error { return nil }
func (sunk) MaxPayload() int64                      { return 4 << 10 }
func (sunk) LastError() error                       { return nil }

// hostile is a payload whose methods do what its text says.
type hostile string

func (h hostile) MarshalJSON() ([]byte, error) {
	if strings.HasPrefix(string(h), "panic") {
		panic(string(h))
	}
	return []byte(h), nil
}

func (h *hostile) UnmarshalJSON(data []byte) error {
	if bytes.Contains(data, []byte("panic")) {
		panic(string(data))
	}
	return json.Unmarshal(data, (*string)(h))
}

// Any name, key and payload leaves in a message that others can read, or is counted. Any message is handled.
func FuzzHostile(f *testing.F) {
	f.Add("a.x", "key", `"payload"`, "all.facts", []byte(`{"is":"facts","node":"n","items":[{"id":1,"name":"a.x","payload":"panic"}]}`))
	f.Add("a.\xff", "\x00", "panic", "all.state", []byte(`{"is":"held","node":"n","items":[{"id":0,"name":"a.x"},null]}`))
	f.Add("", strings.Repeat("<", 900), "{", "to.x", []byte(`{"is":"ack","node":"n","ask":18446744073709551615}`))
	f.Add("mesh.x", "", "null", "wake", []byte(`{"is":"beat","node":"n","held":-1,"sent":-9223372036854775808}`))
	f.Fuzz(func(t *testing.T, name, key, payload, topic string, data []byte) {
		kind := signals.NewKind[hostile]("a.x")
		sink, facts := signals.NewSink(signals.SinkOptions{}), 0
		m, err := join(t.Context(), sunk{func(subject string, data []byte) {
			got := decode(data, "run")
			assert.True(t, got.Node == "one" && len(data) <= 4<<10, "%q", data)
			for _, it := range got.Items {
				assert.True(t, it.Name == "" || it.Name == name && it.Key == key || it.Name == "a.x" && it.Key == "k", "%q", data)
				if got.Is == isFacts {
					facts++
				}
			}
		}}, sink, Options{Cluster: "test", Name: "one", Share: "*", Carry: []Carrier{Carry(kind)}, MinNodes: -1})
		require.NoError(t, err)
		m.OnWake(string(data), func() { panic("on purpose") })
		m.hear(&nats.Msg{Subject: m.subject(topic, "run"), Data: data})
		m.hear(&nats.Msg{Subject: m.subject(topic, m.table.run), Data: data})
		release := kind.Hold(sink, "k", hostile(payload), 0)
		kind.Raise(sink, "k", hostile(payload))
		if mayTravel("*", name) && name != "a.x" {
			sink.RaiseKey(name, key)
			sink.Hold(name, key, 0)
		}
		sink.RaiseKey("a.x", "k")
		release()
		m.Close()
		s := m.Stats()
		assert.True(t, facts > 0 && uint64(facts) == s.Sent, "%v %v", facts, s)
	})
}
