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

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Log is the family of the signals that a Handler raises:
//
//	log.{level}.{category}.{event}[:{type of error}]
//
// The level is debug, info, warn or error, as in slog. Below [slog.LevelDebug] it is trace,
// and from 4 above [slog.LevelError] on it is critical. A level between two of these counts as
// the lower one. In the other parts, letters become lower case, and digits are kept. Other
// characters between letters and digits become one "-"; at the ends they are removed. A
// part that is empty then becomes "none".
//
// The key of the signal is the text of the event. If there is no event, it is the key of the
// operation that raises the signal.
//
//ephemeral:raises log.*
var Log = signals.NewFamily[Record]("log.*")

// A Record is a log record, as the payload of a signal. Treat it as immutable.
//
// Category, Event and ErrorType come from attributes of the logger or of the log call. Groups
// of the logger do not matter; attributes in a [slog.Group] do not count. If there are
// several such attributes, the last one counts.
type Record struct {
	Time     time.Time // zero if the record had none
	Level    slog.Level
	Message  string
	Category string // the attribute "category", or else the outermost group of the logger
	Event    string // attribute "event"
	// ErrorType is the type of an attribute that is an error, such as "fs.PathError". For an
	// error of the packages errors or fmt, it is the type of the wrapped error. If such an
	// error wraps no error, or several, ErrorType is "". It is "" for an error that stands for no failure, such as
	// durable.Snooze: see guard.Failed of core/guard.
	ErrorType string
	// Attrs are all attributes of the logger and of the log call, in the groups of the logger.
	// Values are resolved, see [slog.LogValuer], and passed through ReplaceAttr. They live as
	// long as the signal. They are not copied: do not change a value that a pointer refers to.
	Attrs []slog.Attr
	PC    uintptr // program counter of the log call, for slog.Record{PC: r.PC}.Source(); 0 if it is not known
}

// errorType calls only methods of types of the standard library: others might panic or block.
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
	b = append(b, levels[(min(max(r.Level, lowest), highest)-lowest)>>2]...)
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

// levels are the levels in names of signals. As in slog, they are 4 apart.
var (
	levels  = []string{"trace", "debug", "info", "warn", "error", "critical"}
	aliases = strings.NewReplacer("warning", "warn", "fatal", "critical")
)

const (
	lowest  = slog.LevelDebug - 4
	highest = slog.LevelError + 4
)

// words are the parts of names that say how bad an event is. Names of signals end in such
// past tenses and states, so no module needs its own list.
var words = map[slog.Level][]string{
	slog.LevelError: {"error", "failed", "failure", "panicked", "lost", "exhausted", "dead"},
	slog.LevelWarn: {"open", "opened", "half_open", "reopened", "missed", "skipped", "forced", "dropped", "abandoned", "rejected", "refused",
		"unhealthy", "fenced", "timeout", "limited", "throttled", "anomaly", "backpressure"},
	slog.LevelInfo: {"closed", "recovered", "restored", "healthy"},
}

// LevelOf returns the level of a signal with this name. A bridge uses it if [BridgeOptions.Level]
// is nil. If the first part of the name is a level, as in "error.database", or the second part if
// the first one is "log", it is this level: trace, debug, info, warn, warning, error, critical or
// fatal, in upper or lower case. Otherwise, the first of the following parts decides. The name is
// read up to its first colon:
//
//   - [slog.LevelError]: error, failed, failure, panicked, lost, exhausted, dead
//   - [slog.LevelWarn]: open, opened, half_open, reopened, missed, skipped, forced, dropped,
//     abandoned, rejected, refused, unhealthy, fenced, timeout, limited, throttled,
//     anomaly, backpressure
//   - [slog.LevelInfo]: closed, recovered, restored, healthy
//
// Any other name means [slog.LevelInfo], and known is false.
//
//ephemeral:none
func LevelOf(name string) (level slog.Level, known bool) {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "log."), ":")
	parts := strings.Split(name, ".")
	if i := slices.Index(levels, aliases.Replace(strings.ToLower(parts[0]))); i >= 0 {
		return lowest + slog.Level(4*i), true
	}
	for _, part := range parts {
		for level, all := range words {
			if slices.Contains(all, part) {
				return level, true
			}
		}
	}
	return slog.LevelInfo, false
}
