package logging

import (
	"bytes"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core"
)

// Log is the family of the signals that a Handler raises:
//
//	log.{level}.{category}.{event}[:{type of error}]
//
// The level is debug, info, warn or error, as those of slog, trace below them, or critical from
// [slog.LevelError]+4 on; one in between counts as the next lower one. In the other parts
// letters are in lower case, letters and digits are kept, each run of other characters is one
// "-", none of them at the ends, and a part that is empty then is "none".
//
// The key of the signal is the text of the event. If there is none, it is the key of the
// operation that raises it.
var Log = core.NewFamily[Record]("log.*")

// A Record is a log record, as the payload of a signal. Treat it as immutable.
//
// Category, Event and ErrorType come from attributes of the logger or of the log call, in the
// groups of the logger or outside, but not in a [slog.Group]. The last one counts.
type Record struct {
	Time     time.Time // zero if the record had none
	Level    slog.Level
	Message  string
	Category string // attribute "category", else the outermost group of the logger
	Event    string // attribute "event"
	// ErrorType is the type of an attribute that is an error, such as "fs.PathError". An error
	// of package errors or fmt stands for the one that it wraps; if it wraps none, or several,
	// ErrorType is "".
	ErrorType string
	// Attrs are all attributes of the logger and of the log call, in the groups of the logger.
	// Values are resolved, see [slog.LogValuer], and passed through ReplaceAttr. They are
	// kept as long as the signal and are not copied, so what a pointer leads to may change.
	Attrs []slog.Attr
	PC    uintptr // of the log call; 0 if it is not known
}

// Source is the line of code with the log call, or nil.
func (r Record) Source() *slog.Source { return slog.Record{PC: r.PC}.Source() }

// errorType calls no methods but those of the standard library: others might panic, or block.
func errorType(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		t := reflect.TypeOf(err)
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if path := t.PkgPath(); path != "errors" && path != "fmt" {
			return t.String()
		}
	}
	return ""
}

// signalName is the name that [Log] describes.
func (r *Record) signalName() string {
	b := append(make([]byte, 0, 128), "log."...)
	b = append(b, levels[min(max(0, int(r.Level-lowest)>>2), len(levels)-1)]...)
	b = appendSlug(append(b, '.'), r.Category)
	b = appendSlug(append(b, '.'), r.Event)
	if short, _, _ := strings.Cut(r.ErrorType, "["); short != "" { // without type parameters
		b = appendSlug(append(b, ':'), short[strings.LastIndexByte(short, '.')+1:])
	}
	return string(b)
}

// appendSlug appends text in the form of a part of a name.
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
	return bytes.TrimSuffix(b, []byte("-"))
}

// levels are those that names of signals contain, 4 apart, like those of slog.
var (
	levels  = []string{"trace", "debug", "info", "warn", "error", "critical"}
	aliases = strings.NewReplacer("warning", "warn", "fatal", "critical")
)

const lowest = slog.LevelDebug - 4

// levelOf returns the level that the first part of a signal's name says, or, after "log.", the
// second.
func levelOf(name string) slog.Level {
	name = strings.TrimPrefix(name, "log.")
	if i := strings.IndexAny(name, ".:"); i >= 0 {
		name = name[:i]
	}
	if i := slices.Index(levels, aliases.Replace(strings.ToLower(name))); i >= 0 {
		return lowest + slog.Level(4*i)
	}
	return slog.LevelInfo
}
