package menu

import (
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// maxLines is how many lines of output, and how many signals, are kept for a screen.
const maxLines = 300

// window has the signals that the menu shows. It is a plain structure. For its counters,
// received = shown + filtered + skipped.
type window struct {
	filter  string // a pattern; "" shows all
	every   int    // one matching signal in this many is shown
	signals []signals.Signal

	received uint64
	shown    uint64
	filtered uint64 // did not match
	skipped  uint64 // signals skipped by sampling, or gone from the sink before they were read
	matched  uint64
}

// reset prepares the window for another scenario. Filter and sampling stay.
func (w *window) reset() { *w = window{filter: w.filter, every: max(w.every, 1)} }

// add adds the signals that have come to the sink since the last call.
func (w *window) add(raised []signals.Signal) {
	for _, s := range raised {
		w.skipped += s.Seq - w.received - 1 // Seq counts all signals of the sink from 1
		w.received = s.Seq
		switch {
		case !w.matches(s):
			w.filtered++
			continue
		case w.matched%uint64(w.every) == 0:
			w.shown++
			w.signals = append(w.signals, s)
		default:
			w.skipped++
		}
		w.matched++
	}
	w.signals = w.signals[max(0, len(w.signals)-maxLines):]
}

func (w *window) matches(s signals.Signal) bool {
	return w.filter == "" || signals.Match(w.filter, s.Name)
}

// setFilter removes signals that do not match from the screen. The counters do not change.
func (w *window) setFilter(pattern string) {
	w.filter = pattern
	w.signals = slices.DeleteFunc(slices.Clone(w.signals), func(s signals.Signal) bool { return !w.matches(s) })
}

// sample changes N of "1 of N".
func (w *window) sample(by int) {
	w.every, w.matched = min(max(w.every+by, 1), 100), 0
}

// head describes the content of the window.
func (w *window) head() []string {
	filter := w.filter
	if filter == "" {
		filter = "*"
	}
	return []string{
		fmt.Sprintf("signals %s, 1 of %d", filter, w.every),
		fmt.Sprintf("received %d  shown %d", w.received, w.shown),
		fmt.Sprintf("filtered %d  skipped %d", w.filtered, w.skipped),
	}
}

// line is a signal: its time, if there is room, its place in the sink, its name and its key.
func line(s signals.Signal, width int) string {
	text := fmt.Sprintf("%06d %s %s", s.Seq, s.Name, s.Key)
	if width < 48 {
		return text
	}
	return s.Time.Format("[15:04:05.000] ") + text
}

// families are the colours of names; the first pattern that matches counts.
var families = []struct{ pattern, colour string }{
	{"*error*, *critical*, *fail*", red},
	{"*warn*", yellow},
	{"window.*", blue},
	{"rate.*", magenta},
	{"*complete*, *success*, *succeeded*", green},
	{"*debug*, *trace*", grey},
}

// colour returns the colour of a name; "" is the normal colour of text.
func colour(name string) string {
	for _, f := range families {
		if signals.Match(f.pattern, name) {
			return f.colour
		}
	}
	return ""
}
