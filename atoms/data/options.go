package data

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Store]. The zero value is the default.
type Options[V any] struct {
	// Name is the name of the store, of its table or directory, and the last part of its
	// signals. It has 1 to 63 letters, digits and underscores, and no digit at the
	// beginning. "" means "data".
	//
	//ephemeral:none
	Name string
	// Sink is where the store raises its signals and reads requests; nil means a new sink:
	// see Store.Sink.
	Sink *signals.Sink
	// Codec encodes the values; nil means JSON.
	Codec Codec[V]
	// SavePrefix, LoadPrefix and DeletePrefix are the first part of the names of requests. A
	// dot and Name follow. "" means "save.data", "load.data" and "delete.data". The three must
	// differ from each other, and from the prefixes of the other signals: "saved.data",
	// "loaded.data", "deleted.data", "initialized.data" and "error.data".
	//
	//ephemeral:none
	SavePrefix, LoadPrefix, DeletePrefix string
	// MaxConcurrency is how many requests run at the same time; 0 means 8. Requests for one
	// key run in order, one at a time.
	MaxConcurrency int
	// MaxQueued is how many requests may wait. Further requests are dropped, counted, and
	// answered with [Failed]. 0 means 1024. Negative means none: a request that cannot start
	// at once is dropped.
	MaxQueued int
}

var validName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// CheckName returns an error if name is not valid as the name of a store.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("data: Options.Name must have 1 to 63 letters, digits and underscores and not begin with a digit, not %q", name)
	}
	return nil
}

// A Codec encodes and decodes values. It must be safe for concurrent use.
type Codec[V any] interface {
	Encode(value V) ([]byte, error)
	Decode(encoded []byte) (V, error)
}

// JSON is the codec of package encoding/json.
type JSON[V any] struct{}

// Encode is [json.Marshal].
func (JSON[V]) Encode(value V) ([]byte, error) { return json.Marshal(value) }

// Decode is [json.Unmarshal].
func (JSON[V]) Decode(encoded []byte) (value V, err error) {
	err = json.Unmarshal(encoded, &value)
	return value, err
}

func (o Options[V]) resolved() (Options[V], error) {
	o.Name = cmp.Or(o.Name, "data")
	if err := CheckName(o.Name); err != nil {
		return o, err
	}
	if o.Sink == nil {
		o.Sink = signals.NewSink(signals.SinkOptions{})
	}
	if o.Codec == nil {
		o.Codec = JSON[V]{}
	}
	o.SavePrefix = cmp.Or(o.SavePrefix, "save.data")
	o.LoadPrefix = cmp.Or(o.LoadPrefix, "load.data")
	o.DeletePrefix = cmp.Or(o.DeletePrefix, "delete.data")
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, 8)
	taken := []string{"saved.data", "loaded.data", "deleted.data", "initialized.data", "error.data"}
	for _, prefix := range []string{o.SavePrefix, o.LoadPrefix, o.DeletePrefix} {
		if strings.ContainsAny(prefix, " \t\r\n*?,") || slices.Contains(taken, prefix) {
			return o, fmt.Errorf("data: a prefix in Options must have no blanks, commas and wildcards, and differ from the others and those of the answers, but there is %q", prefix)
		}
		taken = append(taken, prefix)
	}
	return o, nil
}
