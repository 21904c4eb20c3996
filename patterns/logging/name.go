package logging

import (
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// labels are what the name of a signal is made of, besides the level.
type labels struct {
	category, event string
	err             error // only its type is shown
	bridged         bool  // the record comes from a bridge
}

// seeOrigin looks at a value as the caller gave it.
func (l *labels) seeOrigin(v slog.Value) {
	if kind := v.Kind(); kind == slog.KindAny || kind == slog.KindLogValuer {
		switch v := v.Any().(type) {
		case error:
			l.err = v
		case bridged:
			l.bridged = true
		}
	}
}

// see looks at an attribute as it is in the Record.
func (l *labels) see(a slog.Attr) {
	switch a.Key {
	case "category":
		l.category = a.Value.String()
	case "event":
		l.event = a.Value.String()
	}
}

func (l *labels) signalName(level slog.Level, errorType string) string {
	var buffer [128]byte
	b := append(buffer[:0], "log."...)
	b = append(b, levelName(level)...)
	b = appendSlug(append(b, '.'), l.category)
	b = appendSlug(append(b, '.'), l.event)
	if errorType != "" {
		b = appendSlug(append(b, ':'), errorType)
	}
	return string(b)
}

// appendSlug appends text as [Log] says.
func appendSlug(b []byte, text string) []byte {
	start := len(b)
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b = utf8.AppendRune(b, unicode.ToLower(r))
		} else if len(b) > start && b[len(b)-1] != '-' {
			b = append(b, '-')
		}
	}
	if len(b) == start {
		return append(b, "none"...)
	}
	if b[len(b)-1] == '-' {
		b = b[:len(b)-1]
	}
	return b
}

// errorType returns the first type in the chain of err that says something, and its short
// name. Only methods of the standard library are called: others might panic, or block.
func errorType(err error) (full, short string) {
	for err != nil {
		t := reflect.TypeOf(err)
		named := t
		if t.Kind() == reflect.Pointer {
			named = t.Elem()
		}
		if path := named.PkgPath(); path != "errors" && path != "fmt" {
			return t.String(), named.Name()
		}
		next := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, next = range several.Unwrap() {
				break
			}
		}
		err = next
	}
	return "", ""
}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelDebug:
		return "trace"
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	case l < LevelCritical:
		return "error"
	}
	return "critical"
}

// LevelOf returns the level that the first part of a signal's name says, as in "error.database",
// or, in names that begin with "log", the second: trace, debug, warn, warning, error, critical or
// fatal, in upper or lower case. Others are [slog.LevelInfo].
func LevelOf(name string) slog.Level {
	if rest, ok := strings.CutPrefix(name, "log."); ok {
		name = rest
	}
	if i := strings.IndexAny(name, ".:"); i >= 0 {
		name = name[:i]
	}
	switch strings.ToLower(name) {
	case "trace":
		return LevelTrace
	case "debug":
		return slog.LevelDebug
	case "warn", "warning":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	case "critical", "fatal":
		return LevelCritical
	}
	return slog.LevelInfo
}
