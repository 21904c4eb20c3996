package mesh

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core"
)

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

// item is a fact in a message.
type item struct {
	ID      uint64          `json:"id"` // of a raised fact: its number
	Name    string          `json:"name"`
	Key     string          `json:"key,omitempty"`
	Source  string          `json:"source,omitempty"`
	Causes  []string        `json:"causes,omitempty"`
	Age     int64           `json:"age,omitempty"` // when it was sent, of a raised fact
	Payload json.RawMessage `json:"payload,omitempty"`
}

// fits reports whether the texts of the item are as they must be.
func (it *item) fits() bool {
	fits := it.Name != "" && len(it.Name) <= maxName
	for _, text := range append([]string{it.Name, it.Key, it.Source}, it.Causes...) {
		fits = fits && utf8.ValidString(text) // JSON would change it
	}
	return fits
}

// encode returns the fact as others get it, without data if it cannot travel.
func (c carriers) encode(id uint64, s core.Signal, age int64) share {
	path := s.Path()
	it, ok := item{ID: id, Name: s.Name, Key: s.Key, Source: s.Source, Causes: path[:len(path)-1], Age: age}, true
	if carrier, found := c[s.Name]; found {
		it.Payload, ok = carrier.encode(s)
	}
	data, err := json.Marshal(it)
	if !ok || err != nil || !it.fits() || len(data) >= maxItems {
		return share{}
	}
	return share{id, data}
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
