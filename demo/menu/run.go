package menu

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// interval is the time between two looks at a running scenario.
const interval = 100 * time.Millisecond

// run is one run of a scenario. It writes lines and raises signals at any speed; the menu
// looks every [interval].
type run struct {
	screen *scenario.Screen
	cancel context.CancelFunc
	ended  chan struct{} // closed when the scenario has ended
	err    error         // valid after ended is closed
	seq    uint64        // Seq of the last signal that was read

	mu    sync.Mutex
	lines []string // lines that have not been read
}

// frame is the news of a run.
type frame struct {
	lines   []string
	signals []signals.Signal
	ended   bool
	err     error
}

// start makes a run, and returns the command that does the run.
func start(ctx context.Context, s scenario.Scenario) (*run, tea.Cmd) {
	ctx, cancel := context.WithCancel(ctx)
	r := &run{cancel: cancel, ended: make(chan struct{})}
	r.screen = scenario.New(r)
	return r, func() tea.Msg {
		defer cancel()
		defer close(r.ended)
		r.err = Play(ctx, s, r.screen)
		return nil
	}
}

// Write takes lines of the scenario.
func (r *run) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	return len(text), nil
}

// next returns the command that waits and then looks. A run may have only one such command
// at a time.
func (r *run) next() tea.Cmd {
	return tea.Tick(interval, func(time.Time) tea.Msg { return r.look() })
}

// look returns the news. The frame that reports the end of the run is complete.
func (r *run) look() (f frame) {
	select {
	case <-r.ended:
		f.ended, f.err = true, r.err
	default:
	}
	r.mu.Lock()
	f.lines, r.lines = r.lines, nil
	r.mu.Unlock()
	f.signals = slices.Collect(r.screen.Sink.Sense(signals.Query{AfterSeq: r.seq}))
	if n := len(f.signals); n > 0 {
		r.seq = f.signals[n-1].Seq
	}
	return f
}
