package persistentwindow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Window]. The zero value is the default.
type Options struct {
	// Name is the name of the table, and the key of the window's signals; "" means
	// "signals". It has 1 to 63 letters (A to Z, a to z), digits and underscores. The first
	// character is no digit.
	//
	//ephemeral:none
	Name string
	// Pattern selects the signals that are stored and restored, see [signals.Match]; "" means
	// "*". If Pattern names [signals.SignalStarted], coordinators raise it for each operation. If few
	// signals of the file match, Open may read all MaxRows.
	//
	//ephemeral:pattern
	Pattern string
	// Kinds are the kinds whose payloads are stored; see [JSON].
	Kinds []Payload
	// FlushInterval is how long a signal waits until it is written; 0 means 30 seconds. If
	// half of MaxQueued wait, a flush begins at once. It must not be negative.
	FlushInterval time.Duration
	// MaxAge is the maximum age of signals; 0 means 10 minutes, negative no limit. Older ones are
	// not restored. A flush that writes something deletes them from the file.
	MaxAge time.Duration
	// MaxRows is how many signals the file keeps: the newest ones; 0 means 100,000, negative
	// no limit.
	MaxRows int
	// MaxQueued is how many signals and retractions may wait to be written; 0 means 10,000. If
	// there are more, the oldest are dropped and counted. It must not be negative.
	MaxQueued int
	// MaxBatch is how many signals and retractions are written in one transaction; 0 means
	// 1000. It must not be negative.
	MaxBatch int
	// SampleRate n stores one of n signals of each name: the first after a flush, then every
	// n-th. 0 means 1: all signals. It must not be negative.
	SampleRate int
}

var validName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func (o Options) resolved() (Options, error) {
	o.Name, o.Pattern, o.Kinds = cmp.Or(o.Name, "signals"), cmp.Or(o.Pattern, "*"), slices.Clone(o.Kinds)
	o.FlushInterval = cmp.Or(o.FlushInterval, 30*time.Second)
	o.MaxAge, o.MaxRows = cmp.Or(o.MaxAge, 10*time.Minute), cmp.Or(o.MaxRows, 100_000)
	o.MaxQueued, o.MaxBatch, o.SampleRate = cmp.Or(o.MaxQueued, 10_000), cmp.Or(o.MaxBatch, 1000), cmp.Or(o.SampleRate, 1)
	var err error
	if !validName.MatchString(o.Name) {
		err = fmt.Errorf("persistentwindow: Options.Name must have 1 to 63 letters, digits and underscores and not begin with a digit, not %q", o.Name)
	}
	if o.FlushInterval < 0 {
		err = fmt.Errorf("persistentwindow: Options.FlushInterval must be positive, or 0 for 30s, not %v", o.FlushInterval)
	}
	for field, n := range map[string]int{"MaxQueued": o.MaxQueued, "MaxBatch": o.MaxBatch, "SampleRate": o.SampleRate} {
		if n < 0 {
			err = fmt.Errorf("persistentwindow: Options.%s must be positive, or 0 for the default, not %d", field, n)
		}
	}
	if o.MaxRows < 0 {
		o.MaxRows = math.MaxInt
	}
	if o.MaxAge < 0 {
		o.MaxAge = math.MaxInt64
	}
	return o, err
}

// maxPayload is the maximum length of an encoded payload in bytes. Longer payloads are left
// out.
const maxPayload = 1 << 20

// A Payload encodes and decodes payloads of one kind. Make one with [JSON].
type Payload struct {
	kind  string
	text  func(signals.Signal) (text []byte, ok bool)
	raise func(on signals.Raiser, key, text string) bool
}

// JSON encodes payloads of a kind with package encoding/json. If a payload cannot be encoded, or
// the result is longer than 1 MiB, the signal is stored without it. If a payload cannot be decoded,
// the signal is restored without it. A method of the payload that panics counts as an error.
//
//ephemeral:none
func JSON[P any](kind signals.Kind[P]) Payload {
	return Payload{
		kind: kind.Name(),
		text: func(s signals.Signal) ([]byte, bool) {
			payload, ok := kind.From(s)
			if !ok {
				return nil, false
			}
			var text []byte
			var err error
			if panicked := guard.Do("the encoder of a payload", func() { text, err = json.Marshal(payload) }); panicked != nil {
				return nil, false
			}
			return text, err == nil && len(text) <= maxPayload
		},
		raise: func(on signals.Raiser, key, text string) bool {
			var payload P
			err, panicked := guard.Value("the decoder of a payload", func() error { return json.Unmarshal([]byte(text), &payload) })
			return err == nil && panicked == nil && kind.Raise(on, key, payload)
		},
	}
}
