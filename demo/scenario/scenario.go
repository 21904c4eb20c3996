// Package scenario has the parts that all scenarios of the demo share: a name, a function,
// and the lines and signals that it shows.
package scenario

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Scenario is a small program that shows one thing in at most four seconds.
type Scenario struct {
	Name  string // on the command line
	Title string // in the menu: one line
	Run   func(context.Context, *Screen) error
}

// Screen is what a scenario shows: lines, and the signals on its sink. Its methods are safe
// for concurrent use.
type Screen struct {
	Sink *signals.Sink // the menu shows its signals while the scenario runs

	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// New returns a screen that writes its lines to out, one Write for each.
func New(out io.Writer) *Screen {
	return &Screen{Sink: signals.NewSink(signals.SinkOptions{}), out: out, start: time.Now()}
}

// Printf writes one line, with the time since the start in front of it.
func (s *Screen) Printf(format string, args ...any) {
	s.line("%6.2fs  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// Takeaway writes the conclusion of the scenario as its last line. Call it only if the
// conclusion was true.
func (s *Screen) Takeaway(format string, args ...any) {
	s.line("=> %s\n", fmt.Sprintf(format, args...))
}

func (s *Screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...)
}
