package mesh

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// oddity is a payload that takes its time, or panics.
type oddity struct {
	Wait    time.Duration // to be encoded
	In, Out bool          // panics when it is encoded, decoded
}

func (o oddity) MarshalJSON() ([]byte, error) {
	if time.Sleep(o.Wait); o.In {
		panic("on purpose")
	}
	return json.Marshal(o.Out)
}

func (o *oddity) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		panic("on purpose")
	}
	return nil
}

var odd = signals.NewKind[oddity]("a.odd")

// A payload that panics harms no other signal.
func TestPayloadPanics(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		opts := Options{Carry: []Carrier{Carry(odd)}}
		one, two := e.join("one", opts), e.join("two", opts)
		defer closeAll(one, two)
		settle()
		one.sink.Raise("a.first")
		odd.Raise(one.sink, "", oddity{In: true})
		odd.Raise(one.sink, "", oddity{Out: true})
		one.sink.Raise("a.second")
		bad := odd.Hold(one.sink, "", oddity{Out: true}, 0)
		good := one.sink.Hold("a.held", "", 0)
		settle()
		assert.ElementsMatch(t, []string{"a.held:", "a.first:", "a.second:"}, two.take())
		assert.EqualValues(t, 1, one.Stats().Unsent)
		assert.EqualValues(t, 2, two.Stats().Refused)
		bad()
		good()
		settle()
		assert.False(t, two.sink.Has("a.held"))
	})
}

// A signal ages while it is encoded.
func TestSlowPayload(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		opts := Options{Carry: []Carrier{Carry(odd)}, MaxLate: lease / 4}
		one, two := e.join("one", opts), e.join("two", opts)
		defer closeAll(one, two)
		settle()
		for range 2 { // in one batch or in two
			odd.Raise(one.sink, "", oddity{Wait: lease / 3})
		}
		time.Sleep(lease)
		assert.Empty(t, two.take())
		assert.EqualValues(t, 2, two.Stats().Late)
	})
}

// A payload needs both ends, and the same type.
func TestPayloadOfOneSide(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		other := signals.NewKind[string]("a.placed")
		one, two, three := e.join("one", Options{Carry: []Carrier{Carry(placed)}}), e.join("two", Options{}), e.join("three", Options{Carry: []Carrier{Carry(other)}})
		defer closeAll(one, two, three)
		settle()
		placed.Raise(one.sink, "", order{"1", 1})
		placed.Raise(two.sink, "plain", order{"2", 2})
		settle()
		assert.Nil(t, two.got[0].Payload())
		assert.Equal(t, []string{"a.placed:plain"}, three.take())
		assert.EqualValues(t, 1, three.Stats().Refused)
		assert.Nil(t, one.got[0].Payload())
	})
}
