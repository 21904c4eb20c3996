package mesh

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	nats "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

type order struct {
	ID    string
	Total int
}

var placed = signals.NewKind[order]("a.placed")

func TestRaisedFacts(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		opts := Options{Carry: []Carrier{Carry(placed)}}
		one, two, three := e.join("one", opts), e.join("two", opts), e.join("three", Options{Share: "*", Accept: "a.placed"})
		defer closeAll(one, two, three)
		one.sink.Hold("a.refused", "", 0)
		settle()
		assert.Zero(t, three.Nodes()[0].Held)
		two.take()
		placed.Raise(one.sink, "ada", order{"4711", 3})
		one.sink.Raise("b.stays")
		one.sink.Because(signals.Signal{Name: "a.cause"}).RaiseKey("a.led", "k")
		for i := range 50 {
			one.sink.RaiseKey("a.many", fmt.Sprint(i))
		}
		three.sink.Raise("mesh.mine")
		settle()
		got := two.got
		names := two.take()
		require.Len(t, names, 52)
		p, ok := placed.From(got[0])
		assert.True(t, ok && p == order{"4711", 3} && got[0].Node == "one" && got[0].Key == "ada", "got %+v, %v", got[0], p)
		assert.Equal(t, []string{"a.cause", "a.led"}, got[1].Path())
		for i := range 50 {
			assert.Equal(t, fmt.Sprint("a.many:", i), names[i+2])
		}
		assert.Equal(t, []string{"a.placed:ada"}, three.take(), "Accept")
		assert.Empty(t, one.take(), "what came from others is not sent on")
		assert.EqualValues(t, 52, two.Stats().Raised)
		assert.Zero(t, three.Stats().Sent+uint64(three.Stats().Held), "signals of the mesh do not travel")
		assert.EqualValues(t, 52, three.Stats().Refused)
	})
}

func TestHeldFacts(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		sink := signals.NewSink(signals.SinkOptions{})
		before := sink.Hold("a.before", "k", 0)
		one := &node{Mesh: e.joinOn(sink, "one", Options{}), sink: sink}
		two := e.join("two", Options{})
		settle()
		assert.True(t, two.sink.Has("a.before"))
		release := sink.Hold("a.held", "", 0)
		sink.Hold("a.leased", "", 300*time.Millisecond)
		sink.Hold("a.moment", "", 0)()
		sink.Hold("a.moment", "leased", time.Hour)()
		time.Sleep(3 * latency)
		synctest.Wait()
		assert.True(t, two.sink.Has("a.held") && two.sink.Has("a.leased") && !two.sink.Has("a.moment"))
		assert.Contains(t, two.take(), "a.moment:", "handlers see what was held for a moment")
		three := e.join("three", Options{})
		settle()
		assert.True(t, three.sink.Has("a.held"), "on a node that joins later")
		release()
		before()
		time.Sleep(3 * latency)
		synctest.Wait()
		assert.False(t, two.sink.Has("a.held, a.before") || three.sink.Has("a.held, a.before"))
		time.Sleep(300*time.Millisecond - 27*latency)
		assert.True(t, two.sink.Has("a.leased"))
		time.Sleep(5 * latency)
		synctest.Wait()
		assert.False(t, two.sink.Has("a.leased"))

		sink.Hold("a.closed", "", 0)
		settle()
		assert.Equal(t, 1, one.Stats().Held)
		assert.Equal(t, []int{1, 0}, []int{two.Nodes()[0].Held, two.Nodes()[1].Held})
		one.Close()
		settle()
		assert.False(t, two.sink.Has("a.closed"))
		assert.True(t, sink.Has("a.closed"), "here it stays")
		assert.Len(t, two.Nodes(), 1)
		assert.False(t, two.sink.Has(SignalLost), "it has left")
		closeAll(two, three)
	})
}

// What a silent node holds ends Lease after its last beat, and not before. A node that hears nobody says so.
func TestSilence(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{})
		defer closeAll(one, two)
		assert.True(t, one.sink.Has(SignalAlone), "at first")
		settle()
		assert.False(t, one.sink.Has(SignalAlone))
		one.sink.Hold("a.held", "", 0)
		time.Sleep(5 * lease)
		synctest.Wait()
		e.losing(func(from, _, _ string, _ []byte) bool { return from == "one" })
		seen := two.Nodes()[0].Seen
		time.Sleep(time.Until(seen.Add(lease)) - 1)
		synctest.Wait()
		assert.True(t, two.sink.Has("a.held"), "just before")
		assert.False(t, two.sink.Has(SignalAlone))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.False(t, two.sink.Has("a.held"), "at the end of the lease")
		assert.True(t, two.sink.Has(SignalAlone) && two.sink.Has(SignalLost))
		assert.Empty(t, two.Nodes())
		assert.False(t, one.sink.Has(SignalAlone), "it still hears two")
		e.losing(nil)
		time.Sleep(lease/4 + 5*latency)
		synctest.Wait()
		assert.True(t, two.sink.Has("a.held"), "a beat and the list later")
	})
}

// After a cut, what has waited in it is not raised, and does not make the lease longer.
func TestCut(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{MaxLate: lease}), e.join("two", Options{MaxLate: lease})
		defer closeAll(one, two)
		settle()
		release := one.sink.Hold("a.released", "", 0)
		one.sink.Hold("a.held", "", 0)
		settle()
		e.cutOff("one")
		time.Sleep(4 * lease)
		assert.False(t, two.sink.Has("a.held"))
		assert.True(t, one.sink.Has(SignalAlone) && two.sink.Has(SignalAlone))
		for i := range 100 {
			one.sink.RaiseKey("a.old", fmt.Sprint(i))
		}
		release()
		time.Sleep(2 * lease)
		two.take()
		e.heal()
		time.Sleep(lease / 8)
		time.Sleep(lease/8 + 20*latency)
		assert.Equal(t, []string{"a.held:"}, two.take())
		assert.EqualValues(t, 100, two.Stats().Late)
		one.sink.Raise("a.new")
		settle()
		assert.Equal(t, []string{"a.new:"}, two.take())
		assert.Zero(t, two.Stats().Missed)

		e.cutOff("one") // and it dies in the cut
		time.Sleep(lease / 2)
		e.losing(func(from, _, _ string, _ []byte) bool { return from == "one" })
		time.Sleep(2 * lease)
		e.heal()
		settle()
		assert.Empty(t, two.take(), "old beats revive nothing")
		assert.Empty(t, two.Nodes())
	})
}

// A message that is lost ends nothing that stands, and is noticed with the next beat.
func TestLoss(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{})
		defer closeAll(one, two)
		var releases []func()
		for i := range 2500 {
			releases = append(releases, one.sink.Hold("a.held", fmt.Sprint(i), 0))
		}
		settle()
		count := func() int { return two.sink.Count("a.held") }
		require.Equal(t, 2500, count())
		lists, part := 0, 0
		e.losing(func(_, _, _ string, data []byte) bool {
			m := decode(data, "")
			if m.Is != isList {
				return m.Is == isHeld
			}
			if part++; m.From == 0 {
				lists, part = lists+1, 0
			}
			return part == lists%3
		})
		releases[0]()
		one.sink.Hold("a.held", "new", 0)
		settle()
		assert.Equal(t, 2500, count(), "both were lost")
		time.Sleep(5 * lease)
		synctest.Wait()
		assert.Equal(t, []int{2500, 2}, []int{count(), lists}, "of two lists, each without a part, all is known")

		e.losing(func(_, _, _ string, data []byte) bool {
			m := decode(data, "")
			return m.Is == isHeld || m.Is == isList && m.From == 0
		})
		releases[1]()
		time.Sleep(lease / 4 * 3)
		synctest.Wait()
		assert.Equal(t, 2500, count(), "a part that is lost ends nothing")
		time.Sleep(lease / 2)
		synctest.Wait()
		assert.Less(t, count(), 2499, "for Lease")
		e.losing(nil)
		time.Sleep(lease / 2)
		synctest.Wait()
		assert.Equal(t, 2499, count())

		n := 0
		e.losing(func(_, _, _ string, data []byte) bool {
			n++
			return decode(data, "").Is == isFacts && n%2 == 0
		})
		for i := range 3000 {
			one.sink.RaiseKey("a.fact", fmt.Sprint(i))
			if i%10 == 0 {
				time.Sleep(latency)
			}
		}
		e.losing(nil)
		time.Sleep(lease/2 + 20*latency)
		s := two.Stats()
		assert.NotZero(t, s.Missed)
		assert.EqualValues(t, 3000, s.Raised+s.Missed)
		assert.True(t, two.sink.Has(Missed.Name()))
	})
}

// A slow handler makes messages wait and then be lost: all is counted, and beats and held facts
// are not delayed.
func TestSlowHandler(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{MaxLate: -1})
		defer closeAll(one, two)
		settle()
		two.sink.Subscribe("a.fact", func(signals.Signal) { time.Sleep(10 * time.Millisecond) })
		for i := range 1000 {
			one.sink.RaiseKey("a.fact", fmt.Sprint(i))
			time.Sleep(latency)
		}
		release := one.sink.Hold("a.held", "", 0)
		settle()
		assert.True(t, two.sink.Has("a.held"))
		assert.NotZero(t, two.Nodes())
		time.Sleep(8 * lease)
		assert.True(t, two.sink.Has("a.held"))
		release()
		time.Sleep(10 * lease)
		s := two.Stats()
		assert.NotZero(t, s.Missed)
		assert.EqualValues(t, 1000, s.Raised+s.Missed)
	})
}

func TestFlush(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one := e.join("one", Options{})
		assert.NoError(t, one.Flush(t.Context()), "nobody is heard")
		two, three := e.join("two", Options{}), e.join("three", Options{})
		settle()
		two.sink.Subscribe("a.fact", func(signals.Signal) { time.Sleep(500 * time.Millisecond) })
		one.sink.Raise("a.fact")
		one.sink.Hold("a.held", "", 0)
		begun := time.Now()
		assert.NoError(t, one.Flush(t.Context()))
		assert.GreaterOrEqual(t, time.Since(begun), 500*time.Millisecond)
		assert.True(t, two.sink.Has("a.held") && three.sink.Has("a.held"))

		e.losing(func(_, to, subject string, _ []byte) bool {
			return to == "three" && subject == one.subject(topicFacts, one.table.run)
		})
		one.sink.Raise("a.lost")
		settle()
		e.losing(nil)
		var missed *MissedError
		assert.ErrorAs(t, one.Flush(t.Context()), &missed)
		assert.Equal(t, map[string]uint64{"three": 1}, missed.Nodes)
		assert.NoError(t, one.Flush(t.Context()))

		asked := 0
		e.losing(func(_, to, _ string, data []byte) bool {
			m := decode(data, "")
			if m.Ask > 0 && m.Is == isBeat {
				asked++
			}
			return to == "three" && (m.Is == isHeld || m.Is == isBeat && asked <= 1)
		})
		for range 3 * maxBatch {
			one.sink.Raise("a.batch")
		}
		one.sink.Hold("a.second", "", 0)
		assert.NoError(t, one.Flush(t.Context()), "a change and an ask are lost")
		assert.Equal(t, 3*maxBatch, two.sink.Count("a.batch"))
		assert.True(t, two.sink.Has("a.second") && three.sink.Has("a.second"))

		e.losing(func(from, _, _ string, _ []byte) bool { return from == "two" }) // it dies
		begun = time.Now()
		assert.NoError(t, one.Flush(t.Context()), "a silent node need not answer")
		assert.InDelta(t, lease, time.Since(begun), float64(lease/4+2*latency))
		e.losing(nil)
		settle()
		closeAll(two, three)
		settle()
		closeAll(one)
		assert.ErrorIs(t, one.Flush(t.Context()), core.ErrClosed)
	})
}

// Of the nodes of one name that are alive, the one that has started last counts.
func TestTwoNodesOfOneName(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		two := e.join("two", Options{})
		older := e.join("one", Options{})
		settle()
		older.sink.Hold("a.older", "", 0)
		settle()
		e.cutOff("one") // the process stops for a while; another takes its place
		time.Sleep(3 * lease)
		e.mu.Lock()
		e.cut = map[string]bool{}
		waits := e.late
		e.late = nil
		e.mu.Unlock()
		newer := e.join("one", Options{})
		newer.sink.Hold("a.newer", "", 0)
		settle()
		assert.True(t, two.sink.Has("a.newer"))
		for _, deliver := range waits {
			deliver()
		}
		time.Sleep(lease)
		synctest.Wait()
		assert.True(t, two.sink.Has("a.newer") && !two.sink.Has("a.older"), "the old run is not revived")
		assert.True(t, older.sink.Has(SignalDuplicate) && !newer.sink.Has(SignalDuplicate))
		assert.Len(t, two.Nodes(), 1)
		two.take()
		older.sink.Raise("a.fact")
		settle()
		assert.Empty(t, two.take())
		assert.NotZero(t, two.Stats().Refused)
		newer.Close()
		time.Sleep(lease)
		synctest.Wait()
		assert.True(t, two.sink.Has("a.older") && !older.sink.Has(SignalDuplicate), "it is the only one again")
		closeAll(two, older)
	})
}

// What does not fit is counted and harms nobody.
func TestLimits(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		bad := signals.NewKind[func()]("a.bad")
		one := e.join("one", Options{MaxQueued: 100, Carry: []Carrier{Carry(bad)}})
		two := e.join("two", Options{MaxRate: 50})
		defer closeAll(one, two)
		settle()
		long := string(make([]byte, maxName-2))
		one.sink.Hold("a."+long, "", 0)
		assert.NoError(t, one.Flush(t.Context()))
		assert.True(t, two.sink.Has("a.\x00*"), "256 bytes")
		long += "x"
		one.sink.Raise("a." + long)
		one.sink.Hold("a."+long, "", 0)
		one.sink.RaiseKey("a.key", string(make([]byte, maxMessage)))
		one.sink.RaiseKey("a.\xff", "")
		bad.Raise(one.sink, "", func() {})
		var missed *MissedError
		assert.ErrorAs(t, one.Flush(t.Context()), &missed, "nor is all held there")
		assert.EqualValues(t, 5, one.Stats().Unsent)
		for i := range 80 {
			one.sink.RaiseKey("a.fact", fmt.Sprint(i))
		}
		time.Sleep(lease / 2)
		s := two.Stats()
		assert.Equal(t, []uint64{50, 30, 5}, []uint64{s.Raised, s.Over, s.Missed})
		for i, data := range []string{
			"", "\x00\xff", "{", "null", "[]", `"x"`, `{"is":"beat"}`, `{"is":"odd","node":"x"}`, `{"is":"leave","node":"x"}`, `{"is":"change","node":"x","items":[{"id":1,"name":"b.other"}]}`,
			`{"is":"beat","node":"x","held":-9223372036854775808,"digest":18446744073709551615,"last":18446744073709551615,"ask":18446744073709551615,"sent":-9223372036854775808}`,
			`{"is":"facts","node":"x","sent":9223372036854775807,"items":[{"id":0,"name":"b.no"},{"id":18446744073709551615,"name":"b.no","age":-9223372036854775808}]}`,
			`{"is":"held","node":"x","items":[{"id":0,"name":"mesh.alone"},{"id":1,"name":"b.no"},null]}`, `{"is":"list","node":"x","from":18446744073709551615,"items":[null,null]}`,
			`{"is":"ack","node":"x","ask":18446744073709551615,"lost":18446744073709551615}`, `{"is":"held","node":"x","items":` + strings.Repeat("[", 40_000),
			strings.Repeat("x", 900_000), `{"is":"facts","node":"` + strings.Repeat("n", 60_000) + `"}`,
		} {
			for _, topic := range []string{topicState, topicFacts, topicTo, topicTo + two.table.run, topicWake, "all.other"} {
				for _, run := range []string{fmt.Sprint(i), two.table.run} {
					wire{e, "three"}.Publish(two.subject(topic, run), []byte(data))
				}
			}
		}
		settle()
		assert.Greater(t, two.Stats().Refused, s.Refused)
		assert.False(t, two.sink.Has("b.*"))
		assert.False(t, two.sink.Has("mesh.duplicate, mesh.alone"))
		one.sink.Hold("a.held", "", 0)
		settle()
		assert.True(t, two.sink.Has("a.held"))
	})
}

// Handlers on two nodes that answer each other come to an end.
func TestLoopOverNodes(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{})
		defer closeAll(one, two)
		settle()
		for _, n := range []*node{one, two} {
			n.sink.Subscribe("a.*", func(s signals.Signal) {
				if s.Node != "" {
					n.sink.Because(s).Raise(fmt.Sprint("a.answer-", s.Depth()))
				}
			})
		}
		one.sink.Raise("a.question")
		time.Sleep(lease)
		assert.EqualValues(t, 1, one.sink.Stats().Blocked+two.sink.Stats().Blocked)
		assert.Less(t, one.Stats().Sent+two.Stats().Sent, uint64(15))
	})
}

// Programs with two versions of the protocol share a server. They do not hear each other, and
// both meshes work.
func TestTwoVersions(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{})
		newer := func(name string) *node {
			sink := signals.NewSink(signals.SinkOptions{})
			m, err := join(t.Context(), next{wire{e, name + "-next"}}, sink, Options{Cluster: "test", Name: name, Share: "a.*", Lease: lease})
			require.NoError(t, err)
			return &node{Mesh: m, sink: sink}
		}
		three, four := newer("one"), newer("four") // a name of both
		defer closeAll(one, two, three, four)
		settle()
		one.sink.Hold("a.old", "", 0)
		three.sink.Hold("a.new", "", 0)
		one.sink.Raise("a.fact")
		three.sink.Raise("a.fact")
		one.Wake("orders")
		assert.NoError(t, one.Flush(t.Context()))
		assert.NoError(t, three.Flush(t.Context()))
		time.Sleep(2 * lease)
		synctest.Wait()
		for _, n := range []*node{one, two, three, four} {
			old := n == one || n == two
			assert.Equal(t, []bool{old, !old}, []bool{n.sink.Has("a.old"), n.sink.Has("a.new")})
			assert.Equal(t, 1, n.sink.Count("a.fact"))
			assert.Len(t, n.Nodes(), 1)
			assert.Zero(t, n.Stats().Refused)
			assert.False(t, n.sink.Has("mesh.*"))
		}
	})
}

func TestWake(t *testing.T) {
	inEther(t, func(t *testing.T, e *ether) {
		one, two := e.join("one", Options{}), e.join("two", Options{})
		defer closeAll(one, two)
		var here, there int
		one.OnWake("orders", func() { here++ })
		cancel := two.OnWake("orders", func() { there++ })
		one.Wake("orders")
		one.Wake("other")
		settle()
		assert.Equal(t, []int{1, 1}, []int{here, there})
		cancel()
		one.Wake("orders")
		settle()
		assert.Equal(t, []int{2, 1}, []int{here, there})
	})
}

func TestOptions(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	for want, opts := range map[string]Options{
		`Cluster is "a.b"`: {Cluster: "a.b"},
		"Name is":          {Cluster: "a", Name: "\xff"},
		"Lease is 1ms":     {Cluster: "a", Lease: time.Millisecond},
		"MinNodes is 1":    {Cluster: "a", MinNodes: 1},
		"MaxQueued is -1":  {Cluster: "a", MaxQueued: -1},
		"zero Carrier":     {Cluster: "a", Carry: []Carrier{{}}},
		`"a.placed" twice`: {Cluster: "a", Carry: []Carrier{Carry(placed), Carry(placed)}},
	} {
		_, err := join(t.Context(), nil, sink, opts)
		assert.ErrorContains(t, err, want)
	}
	_, err := Join(t.Context(), nil, sink, Options{Cluster: "a"})
	assert.ErrorContains(t, err, "connection")
	_, err = join(t.Context(), nowhere{}, sink, Options{Cluster: "a"})
	assert.ErrorIs(t, err, errNoServer)
	assert.Zero(t, sink.Stats().Held)
	o, err := Options{Cluster: "a"}.resolved()
	assert.NoError(t, err)
	assert.NotEmpty(t, o.Name)
}

var errNoServer = errors.New("no server")

// nowhere is a bus without a server.
type nowhere struct{}

func (nowhere) Subscribe(string, nats.MsgHandler) (*nats.Subscription, error) {
	return nil, errNoServer
}
func (nowhere) FlushWithContext(context.Context) error { return errNoServer }
func (nowhere) Publish(string, []byte) error           { return errNoServer }
func (nowhere) MaxPayload() int64                      { return 1 << 20 }
func (nowhere) LastError() error                       { return errNoServer }
