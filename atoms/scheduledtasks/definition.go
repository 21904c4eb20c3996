package scheduledtasks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Definition says which task is due when. Its JSON form is an object with these fields, in
// this spelling. Fields that are unknown, of the wrong type or given twice are errors; null
// stands for a field that is left out.
type Definition struct {
	// Name identifies the schedule: it is the key of its signals and its name in a [Store].
	// It is required and unique, and has at most 200 bytes. It has no comma, no wildcard (*
	// or ?), and no blanks at its ends.
	//
	//ephemeral:none
	Name string `json:"name"`
	// Cron says when the task is due; see the package documentation.
	Cron string `json:"cron"`
	// Signal is the name of the signal that [Raise] and [Run] raise for the task. It is
	// required, unless the target of the scheduler is a [TargetFunc]. The rules for Name hold
	// for it, too, but several schedules may have one Signal.
	//
	//ephemeral:raises
	Signal string `json:"signal,omitempty"`
	// Key is the key of that signal; Payload is any JSON value, Description any text.
	//
	//ephemeral:none
	Key         string          `json:"key,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Description string          `json:"description,omitempty"`
	// TimeZone is the name of the zone that Cron means, as for [time.LoadLocation]; ""
	// means UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Format says how many fields Cron has: 5 if it is "Standard", 6 with a first field for
	// seconds if it is "IncludeSeconds"; "" allows both. Case does not matter.
	Format string `json:"format,omitempty"`
	// RunOnStartup runs the latest past tick at once when the schedule is added or the
	// scheduler starts. If that tick or a later one is marked in [Options.Store], it does
	// nothing.
	RunOnStartup bool `json:"runOnStartup,omitempty"`

	// Missed, Overlap, Jitter and Timeout take the place of the fields of [Options] with these
	// names, unless they are zero. In JSON, Jitter and Timeout are texts such as "30s".
	Missed  int           `json:"missed,omitempty"`
	Overlap Overlap       `json:"overlap,omitempty"`
	Jitter  time.Duration `json:"jitter,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// MarshalJSON writes the JSON form.
func (d Definition) MarshalJSON() ([]byte, error) {
	type fields Definition
	text := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	return json.Marshal(struct {
		fields
		Jitter  string `json:"jitter,omitempty"`
		Timeout string `json:"timeout,omitempty"`
	}{fields(d), text(d.Jitter), text(d.Timeout)})
}

// options returns the options of the scheduler with those of the definition in their place.
func (d Definition) options(o Options) Options {
	o.Missed, o.Overlap = cmp.Or(d.Missed, o.Missed), cmp.Or(d.Overlap, o.Overlap)
	o.Jitter, o.Timeout = cmp.Or(d.Jitter, o.Jitter), cmp.Or(d.Timeout, o.Timeout)
	return o
}

// Parse reads a JSON array of definitions and checks them. The error names the entry, counted
// from 1, and the field that is wrong. A Signal may be missing: [New] and [Load] know whether the
// target needs one.
//
//ephemeral:raises *
func Parse(data []byte) ([]Definition, error) { return parse("", data, false) }

// parse does the work of Parse. File is put in front of entries in errors.
func parse(file string, data []byte, needsSignal bool) ([]Definition, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil || entries == nil {
		return nil, fmt.Errorf("scheduledtasks: %sexpected a JSON array of objects: %v", file, err)
	}
	definitions := make([]Definition, len(entries))
	for i, entry := range entries {
		if err := definitions[i].decode(entry); err != nil {
			return nil, fmt.Errorf("scheduledtasks: %sentry %d, %w", file, i+1, err)
		}
	}
	_, err := compile(file, definitions, Options{}, needsSignal)
	return definitions, err
}

// decode reads a definition from a valid JSON value.
func (d *Definition) decode(data []byte) error {
	jitter, timeout := durationText{"jitter", &d.Jitter}, durationText{"timeout", &d.Timeout}
	fields := map[string]any{
		"missed": &d.Missed, "overlap": &d.Overlap, "jitter": &jitter, "timeout": &timeout,
		"name": &d.Name, "cron": &d.Cron, "signal": &d.Signal, "key": &d.Key, "payload": &d.Payload, "description": &d.Description,
		"timeZone": &d.TimeZone, "format": &d.Format, "runOnStartup": &d.RunOnStartup,
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if begin, _ := dec.Token(); begin != json.Delim('{') {
		return wrong(string(data), "expected an object")
	}
	for dec.More() {
		token, _ := dec.Token()
		name, _ := token.(string)
		field := fields[name]
		if field == nil {
			return wrong(name, "there is no such field, or it is given twice")
		}
		switch err := dec.Decode(field).(type) {
		case nil:
		case *json.UnmarshalTypeError:
			return wrong(name, "expected a %v, got a %s", err.Type, err.Value)
		default:
			return err
		}
		fields[name] = nil
	}
	return nil
}

// durationText reads a field that is a duration in the form of [time.ParseDuration].
type durationText struct {
	field string
	to    *time.Duration
}

func (t *durationText) UnmarshalJSON(data []byte) (err error) {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return wrong(t.field, "expected a text such as \"30s\", got %.99q", data)
	}
	if text == "" {
		return nil
	}
	if *t.to, err = time.ParseDuration(text); err != nil {
		return wrong(t.field, "expected a text such as \"30s\", got %.99q", text)
	}
	return nil
}

// stored returns the names under which a [Store] keeps the last tick, and twice since when the cron is in force. A name of a schedule
// has no comma.
func (d Definition) stored() [3]string {
	return [3]string{d.Name, d.Name + ", since", d.Name + ", " + d.Cron + " " + d.TimeZone}
}

// wrong is an error of a field.
func wrong(field, format string, args ...any) error {
	return errors.New(fmt.Sprintf("%.99q: ", field) + fmt.Sprintf(format, args...))
}

// plain returns an error if text cannot be the name of a signal or schedule.
func plain(field, text string) error {
	if text == "" || len(text) > 200 || strings.TrimSpace(text) != text || strings.ContainsAny(text, "*?,") {
		return wrong(field, "expected 1 to 200 bytes without commas, wildcards, and blanks around them, got %.99q", text)
	}
	return nil
}

// check returns the spec of a definition, or an error if the definition is wrong.
func (d Definition) check(needsSignal bool) (*spec, error) {
	err := plain("name", d.Name)
	if err == nil && (needsSignal || d.Signal != "") {
		err = plain("signal", d.Signal)
	}
	if err != nil {
		return nil, err
	}
	if d.Payload != nil && !json.Valid(d.Payload) {
		return nil, wrong("payload", "expected JSON, got %.99q", d.Payload)
	}
	if d.Missed > maxMissed {
		return nil, wrong("missed", "expected at most %d, got %d", maxMissed, d.Missed)
	}
	if !d.Overlap.valid() {
		return nil, wrong("overlap", "expected %q or %q, got %.99q", AllowOverlap, SkipOverlap, d.Overlap)
	}
	return parseSpec(d.Cron, d.Format, d.TimeZone)
}
