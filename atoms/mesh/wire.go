package mesh

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core"
)

// The protocol. All messages are JSON. The subject says the version, the cluster, what the
// message is about, and the run of a node: its start and a random number, in hexadecimal.
//
//	ephemeral.mesh.v1.CLUSTER.state.RUN  beats and held facts of the node, in order
//	ephemeral.mesh.v1.CLUSTER.facts.RUN  raised facts of the node, in order
//	ephemeral.mesh.v1.CLUSTER.wake.RUN   the text is the name of a durable queue
//	ephemeral.mesh.v1.CLUSTER.to.RUN     answers to the node
//
// A program with another version of the protocol has other subjects: neither hears the other.
const (
	subjects   = "ephemeral.mesh.v1."
	topicState = "state"
	topicFacts = "facts"
	topicWake  = "wake"
	topicTo    = "to"
)

// What a message is.
const (
	isBeat   = "beat"   // state: the node lives, with the count and the digest of its held facts
	isChange = "change" // state: facts that are held from now on, and ids of those that are not
	isPiece  = "piece"  // state: a part of all held facts
	isLeave  = "leave"  // state: the node has closed
	isFacts  = "facts"  // facts: raised facts with their numbers
	isAsk    = "ask"    // state and facts: a node that has processed all before it answers
	isNeed   = "need"   // to: the held facts are not known
	isAck    = "ack"    // to: the answer to an ask
)

const (
	maxName    = 256
	maxMessage = 64 << 10
	maxItems   = maxMessage - 8<<10 // the rest of the message takes less than 8 kB
	maxHolds   = 10_000             // of a node
	maxBatch   = 1000               // facts or ids of a message
)

// message is any message.
type message struct {
	Is     string   `json:"is"`
	Node   string   `json:"node"`
	Run    string   `json:"run,omitempty"`    // to: of the sender
	Sent   int64    `json:"sent"`             // by the clock of its node
	Last   uint64   `json:"last,omitempty"`   // facts: the highest number so far
	Held   int      `json:"held,omitempty"`   // beat, ask
	Digest uint64   `json:"digest,omitempty"` // likewise
	List   uint64   `json:"list,omitempty"`   // piece: the list that it is a part of
	Pieces int      `json:"pieces,omitempty"` // of the list
	Upto   uint64   `json:"upto,omitempty"`   // piece: held facts of higher ids are not in the list
	Ended  []uint64 `json:"ended,omitempty"`  // change
	Ask    uint64   `json:"ask,omitempty"`    // ask, ack
	Of     string   `json:"of,omitempty"`     // ack: the topic
	Lost   uint64   `json:"lost,omitempty"`   // ack: facts of the node that were not raised
	Items  []item   `json:"items,omitempty"`
}

// item is a fact.
type item struct {
	ID      uint64          `json:"id"` // of a raised fact: its number
	Name    string          `json:"name"`
	Key     string          `json:"key,omitempty"`
	Source  string          `json:"source,omitempty"`
	Causes  []string        `json:"causes,omitempty"`
	Age     int64           `json:"age,omitempty"` // when it was sent, of a raised fact
	Payload json.RawMessage `json:"payload,omitempty"`
}

// encode returns the message with items that are encoded already.
func encode(m message, items [][]byte) []byte {
	head, _ := json.Marshal(m) // no field can fail
	if len(items) == 0 {
		return head
	}
	head = append(head[:len(head)-1], `,"items":[`...)
	return append(append(head, bytes.Join(items, []byte{','})...), `]}`...)
}

// decode returns the message in data, or nil if it is none that a node sends.
func decode(data []byte) *message {
	m := new(message)
	if len(data) > maxMessage || json.Unmarshal(data, m) != nil || m.Node == "" || len(m.Node) > maxName {
		return nil
	}
	return m
}

// A Carrier encodes the payloads of a kind. Make one with [Carry].
type Carrier struct {
	name   string
	encode func(signal core.Signal) (data []byte, ok bool)
	decode func(data []byte) (payload any, ok bool)
}

// Carry lets payloads of the kind travel, as JSON. Both ends declare it, see [Options].
//
//ephemeral:raises {kind}
func Carry[P any](kind core.Kind[P]) Carrier {
	return Carrier{
		kind.Name(),
		func(signal core.Signal) ([]byte, bool) {
			p, ok := signal.Payload().(P)
			if !ok {
				return nil, signal.Payload() == nil
			}
			data, err := json.Marshal(p)
			return data, err == nil
		},
		func(data []byte) (any, bool) {
			var p P
			err := json.Unmarshal(data, &p)
			return p, err == nil
		},
	}
}

// carriers are carriers by name.
type carriers map[string]Carrier

// encode returns the fact as JSON. Ok is false if it cannot travel.
func (c carriers) encode(id uint64, s core.Signal, age int64) (data []byte, ok bool) {
	path := s.Path()
	it := item{ID: id, Name: s.Name, Key: s.Key, Source: s.Source, Causes: path[:len(path)-1], Age: age}
	if !it.fits() {
		return nil, false
	}
	if carrier, found := c[s.Name]; found {
		if it.Payload, ok = carrier.encode(s); !ok {
			return nil, false
		}
	}
	data, err := json.Marshal(it)
	return data, err == nil && len(data) < maxItems
}

// fits reports whether the texts of the item are as they must be.
func (it *item) fits() bool {
	if it.Name == "" || len(it.Name) > maxName {
		return false
	}
	for _, text := range append([]string{it.Name, it.Key, it.Source}, it.Causes...) {
		if !utf8.ValidString(text) { // JSON would change it
			return false
		}
	}
	return true
}

// signal returns the fact for core.Sink.Import. Ok is false if its payload cannot be decoded.
func (c carriers) signal(it *item, held bool) (s core.Signal, ok bool) {
	var payload any
	if carrier, found := c[it.Name]; found && it.Payload != nil {
		if payload, ok = carrier.decode(it.Payload); !ok {
			return s, false
		}
	}
	return core.Signal{Name: it.Name, Key: it.Key, Source: it.Source, Held: held}.With(payload, it.Causes...), true
}
