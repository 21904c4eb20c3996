package scheduledtasks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A Definition says which task is due when. Its JSON form is an object with these fields, in
// this spelling. Fields that are unknown, of the wrong type or given twice are errors; null
// stands for a field that is left out.
type Definition struct {
	// Name is the identity of the schedule: the key of its signals, and what a [Store]
	// remembers it by. It must be unique, at most 200 bytes long, and without commas,
	// wildcards, and blanks around it.
	Name string `json:"name"`
	// Cron says when the task is due; see the package documentation.
	Cron string `json:"cron"`
	// Signal is the name of the signal that [Raise] and [Run] raise for the task. It is
	// required, and must be a name that [core.NewKind] accepts.
	Signal string `json:"signal"`
	// Key is the key of that signal; Payload is any JSON value, Description any text.
	Key         string          `json:"key,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Description string          `json:"description,omitempty"`
	// TimeZone is the name of the zone that Cron means, as for [time.LoadLocation]; ""
	// means UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Format is how many fields Cron has: "Standard" 5, "IncludeSeconds" 6, the first of
	// which is that of the seconds; "" means either. Case does not matter.
	Format string `json:"format,omitempty"`
	// RunOnStartup makes the newest tick before the schedule is added due at once, unless
	// [Options.Store] has marked it or a later one.
	RunOnStartup bool `json:"runOnStartup,omitempty"`
}

// Parse reads a JSON array of definitions and checks them. The error says what is wrong with
// which entry, counted from 1, and which of its fields.
func Parse(data []byte) ([]Definition, error) { return parse("", data) }

// parse is Parse, with text to put in front of entries in errors.
func parse(file string, data []byte) ([]Definition, error) {
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
	_, err := compile(file, definitions, 0)
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

// wrong is an error of a field.
func wrong(field, format string, args ...any) error {
	return errors.New(fmt.Sprintf("%.99q: ", field) + fmt.Sprintf(format, args...))
}

// plain says why text cannot be the name of a signal.
func plain(field, text string) error {
	if text == "" || len(text) > 200 || strings.TrimSpace(text) != text || strings.ContainsAny(text, "*?,") {
		return wrong(field, "expected 1 to 200 bytes without commas, wildcards, and blanks around them, got %.99q", text)
	}
	return nil
}

// check says what is wrong with a definition, or when it is due.
func (d Definition) check() (*spec, error) {
	if err := cmp.Or(plain("name", d.Name), plain("signal", d.Signal)); err != nil {
		return nil, err
	}
	if d.Payload != nil && !json.Valid(d.Payload) {
		return nil, wrong("payload", "expected JSON, got %.99q", d.Payload)
	}
	return parseSpec(d.Cron, d.Format, d.TimeZone)
}
