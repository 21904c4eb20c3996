package mesh

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Close may be called in a handler, twice, and by many.
func TestClose(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{})
		settle()
		one.sink.Hold("a.held", "", 0)
		settle()
		two.sink.Subscribe("a.fact", func(signals.Signal) { assert.NoError(t, two.Close()) })
		two.sink.SubscribeRetracted("a.held", func(signals.Retraction) { assert.NoError(t, two.Close()) })
		two.take()
		for range 3 { // in one message
			one.sink.Raise("a.fact")
		}
		settle()
		assert.Equal(t, []string{"a.fact:"}, two.take(), "nothing after Close")
		assert.Empty(t, two.Nodes())
		assert.False(t, two.sink.Has("a.held"))
		assert.Empty(t, one.Nodes())
		for range 3 {
			go one.Close()
		}
		one.sink.Raise("a.late")
		assert.NoError(t, one.Close())
		one.Wake("orders")
		assert.False(t, one.sink.Has(SignalAlone))
	})
}

// What a node has raised before Close is raised on the others, also behind a slow handler.
func TestRaisedBeforeClose(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{})
		defer closeAll(two)
		settle()
		two.sink.Subscribe("a.*", func(signals.Signal) { time.Sleep(latency) })
		for i := range 5 {
			one.sink.RaiseKey("a.last", fmt.Sprint(i))
			time.Sleep(latency / 2)
		}
		one.Close()
		settle()
		assert.Equal(t, []string{"a.last:0", "a.last:1", "a.last:2", "a.last:3", "a.last:4"}, two.take())
		assert.Zero(t, two.Stats().Refused)
	})
}

// Close in a handler while a payload is encoded: the order of what is sent stays.
func TestCloseWhileSending(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		opts := Options{Carry: []Carrier{Carry(odd)}}
		one, two := e.join("one", opts), e.join("two", opts)
		defer closeAll(two)
		settle()
		odd.Raise(one.sink, "", oddity{Wait: 50 * latency})
		synctest.Wait()
		one.sink.Raise("a.next")
		one.sink.Subscribe("stop", func(signals.Signal) { one.Close() })
		one.sink.Raise("stop")
		settle()
		assert.Equal(t, []string{"a.odd:", "a.next:"}, two.take())
	})
}

// Close in a handler of a raised signal does not wait for a handler of a held one, which may
// wait for it.
func TestCloseInOneOfTwoHandlers(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{})
		defer closeAll(one, two)
		settle()
		closed := make(chan struct{})
		two.sink.Subscribe("a.held", func(signals.Signal) { <-closed })
		two.sink.Subscribe("a.fact", func(signals.Signal) { two.Close(); close(closed) })
		one.sink.Hold("a.held", "", 0)
		settle()
		one.sink.Raise("a.fact")
		settle()
		assert.False(t, two.sink.Has("a.held"))
	})
}
