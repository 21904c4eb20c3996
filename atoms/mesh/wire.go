package mesh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The protocol. All messages but wakes are JSON. The subject says the version, the cluster,
// what the message is about, and the run of a node: its start, in hexadecimal, and random
// letters. What a node sends to all arrives in order.
//
//	ephemeral.mesh.v1.CLUSTER.all.state.RUN  beats and held facts of the node
//	ephemeral.mesh.v1.CLUSTER.all.facts.RUN  raised facts of the node
//	ephemeral.mesh.v1.CLUSTER.wake.RUN       the text is the name of a durable queue
//	ephemeral.mesh.v1.CLUSTER.to.RUN.RUN     answers to the first node, of the second
//
// A program with another version of the protocol has other subjects: neither hears the other.
const (
	subjects   = "ephemeral.mesh.v1."
	topicState = "all.state"
	topicFacts = "all.facts"
	topicWake  = "wake"
	topicTo    = "to."
)

// What a message is.
const (
	isBeat  = "beat"  // state: the node lives, and what it has sent; it may ask for an ack
	isHeld  = "held"  // state: facts that are held, and without a name those that are not any more
	isList  = "list"  // state: a part of all facts that are held
	isLeave = "leave" // state: the node has closed
	isFacts = "facts" // facts: raised facts with their numbers
	isNeed  = "need"  // to: the held facts are not known
	isAck   = "ack"   // to: all before a beat is known, and all of its facts have been raised
)

const (
	maxName    = 256
	maxMessage = 64 << 10
	maxHead    = 2 << 10 // of a message, all but its items
	maxItems   = maxMessage - maxHead
	maxHolds   = 10_000 // of a node
	maxBatch   = 1000   // facts of a message
)

// message is any message.
type message struct {
	Is     string        `json:"is"`
	Node   string        `json:"node"`
	Run    string        `json:"-"`                // of the sender; it is in the subject
	Sent   time.Duration `json:"sent"`             // by the clock of its node, but in answers
	Last   uint64        `json:"last,omitempty"`   // beat: the highest number of a fact so far
	Held   int           `json:"held,omitempty"`   // beat: how many facts are held
	Digest uint64        `json:"digest,omitempty"` // beat: of their ids
	Ask    uint64        `json:"ask,omitempty"`    // beat: its number, if it asks; ack: of the beat
	Lost   uint64        `json:"lost,omitempty"`   // ack: facts of the node that were not raised
	From   uint64        `json:"from,omitempty"`   // list: of the ids beyond this
	Upto   uint64        `json:"upto,omitempty"`   // and up to this, all others have ended
	Items  []item        `json:"items,omitempty"`  // held, list, facts
}

// item is a fact in a message.
type item struct {
	ID      uint64          `json:"id"`   // of a raised fact: its number
	Name    string          `json:"name"` // "": the held fact has ended
	Key     string          `json:"key,omitempty"`
	Source  string          `json:"source,omitempty"`
	Causes  []string        `json:"causes,omitempty"`
	Age     time.Duration   `json:"age,omitempty"` // when it was sent, of a raised fact
	Payload json.RawMessage `json:"payload,omitempty"`
}

// share is a fact of this node as others get it.
type share struct {
	id   uint64
	data []byte // an item
}

// cut cuts off the facts that fit into the room of a message.
func cut(all []share, room int) (part, rest []share) {
	size := 0
	for i := range all {
		if size += len(all[i].data) + 1; i == maxBatch || i > 0 && size > room {
			return all[:i], all[i:]
		}
	}
	return all, nil
}

// encode returns the message with facts.
func encode(m message, items []share) []byte {
	data, _ := json.Marshal(m) // no field can fail
	data = append(data[:len(data)-1], `,"items":[`...)
	for _, s := range items {
		data = append(append(data, s.data...), ',')
	}
	return append(bytes.TrimSuffix(data, []byte{','}), "]}"...)
}

// decode returns the message of a run in data, or an empty one if it is none that a node sends.
func decode(data []byte, run string) *message {
	m := new(message)
	if len(data) > maxMessage || json.Unmarshal(data, m) != nil || m.Node == "" || len(m.Node) > maxName {
		return new(message)
	}
	m.Run = run
	return m
}

// A Carrier encodes the payloads of a kind. Make one with [Carry].
type Carrier struct {
	name   string
	encode func(signal signals.Signal) (data []byte, ok bool)
	decode func(data []byte) (payload any, ok bool)
}

// Carry lets payloads of the kind travel, as JSON. Both ends declare it, see [Options].
//
//ephemeral:raises {kind}
func Carry[P any](kind signals.Kind[P]) Carrier {
	return Carrier{
		kind.Name(),
		func(signal signals.Signal) (data []byte, ok bool) {
			p, ok := signal.Payload().(P)
			if !ok {
				return nil, signal.Payload() == nil
			}
			var failed error
			err := guard.Do("MarshalJSON", func() { data, failed = json.Marshal(p) })
			// A message around it is nested deeper, and must be readable for the other facts in it.
			return data, err == nil && failed == nil && json.Valid(slices.Concat([]byte("[[["), data, []byte("]]]")))
		},
		func(data []byte) (payload any, ok bool) {
			var p P
			failed, err := guard.Value("UnmarshalJSON", func() error { return json.Unmarshal(data, &p) })
			return p, err == nil && failed == nil
		},
	}
}

// carriers are carriers by name.
type carriers map[string]Carrier

func newCarriers(all []Carrier) (carriers, error) {
	c := carriers{}
	for _, one := range all {
		if one.encode == nil {
			return nil, fmt.Errorf("mesh: Options.Carry has a zero Carrier: Carry makes them")
		}
		if _, twice := c[one.name]; twice {
			return nil, fmt.Errorf("mesh: Options.Carry has %q twice", one.name)
		}
		c[one.name] = one
	}
	return c, nil
}

// encode returns the fact as others get it, without data if it cannot travel.
func (c carriers) encode(id uint64, s signals.Signal, age time.Duration) share {
	path := s.Path()
	it := item{ID: id, Name: s.Name, Key: s.Key, Source: s.Source, Causes: path[:len(path)-1], Age: age}
	ok := s.Name != "" && len(s.Name) <= maxName && !changed(s.Key) && !changed(s.Source) && !slices.ContainsFunc(path, changed)
	if carrier, found := c[s.Name]; found && ok {
		it.Payload, ok = carrier.encode(s)
	}
	data, err := json.Marshal(it)
	if !ok || err != nil || len(data) >= maxItems { // no server lets it pass
		return share{}
	}
	return share{id, data}
}

// changed reports whether JSON would change a text.
func changed(text string) bool { return !utf8.ValidString(text) }

// signal returns the fact for signals.Sink.Import. Ok is false if its payload cannot be decoded.
func (c carriers) signal(it *item, held bool) (s signals.Signal, ok bool) {
	var payload any
	if carrier, found := c[it.Name]; found && it.Payload != nil {
		if payload, ok = carrier.decode(it.Payload); !ok {
			return s, false
		}
	}
	return signals.Signal{Name: it.Name, Key: it.Key, Source: it.Source, Held: held}.With(payload, it.Causes...), true
}
