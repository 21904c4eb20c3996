// Package logtext makes the forms in logs of structs.
package logtext

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Marshal is [json.Marshal]. It returns an error if a method of v panics.
func Marshal(v any) (text []byte, err error) {
	if panicked := guard.Do("MarshalJSON", func() { text, err = json.Marshal(v) }); panicked != nil {
		err = panicked
	}
	return text, err
}

// Group returns a group of attributes. Those of more are left out if their values are
// zero.
func Group(attrs []slog.Attr, more ...slog.Attr) slog.Value {
	for _, a := range more {
		if !reflect.ValueOf(a.Value.Any()).IsZero() {
			attrs = append(attrs, a)
		}
	}
	return slog.GroupValue(attrs...)
}

// StatsValue is the LogValue of a struct of counters: see core.StatsValue.
func StatsValue(stats any) slog.Value {
	return slog.GroupValue(statsFields(nil, reflect.ValueOf(stats))...)
}

// StatsString is the JSON form of a struct of counters.
func StatsString(stats any) string {
	text, err := json.Marshal(stats)
	if err != nil {
		return guard.Text(err)
	}
	return string(text)
}

func leftOut(value reflect.Value, how string) bool {
	return value.Kind() == reflect.Slice || value.Kind() == reflect.Map || how == "omitzero" && value.IsZero()
}

func statsFields(fields []slog.Attr, v reflect.Value) []slog.Attr {
	for field, value := range v.Fields() {
		name, how, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && value.Kind() == reflect.Struct:
			fields = statsFields(fields, value)
			continue
		case !field.IsExported() || name == "-" || leftOut(value, how):
			continue
		case name == "":
			name = field.Name
		}
		fields = append(fields, slog.Any(name, value.Interface()))
	}
	return fields
}
