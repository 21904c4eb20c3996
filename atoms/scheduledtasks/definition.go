package scheduledtasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	_, err := compile(file, definitions, 0, needsSignal)
	return definitions, err
}

// decode reads a definition from a valid JSON value.
func (d *Definition) decode(data []byte) error {
	fields := map[string]any{
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
		if err, ok := dec.Decode(field).(*json.UnmarshalTypeError); ok {
			return wrong(name, "expected a %v, got a %s", err.Type, err.Value)
		}
		fields[name] = nil
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
	return parseSpec(d.Cron, d.Format, d.TimeZone)
}
