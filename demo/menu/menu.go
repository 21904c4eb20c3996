// Package menu is the terminal menu of the demo: a list of scenarios, the output of the one
// that runs, and its signals while they are raised.
//
// The model is a plain structure that messages change: keys, the size of the terminal, and
// ten times a second the news of the running scenario. It reads signals with Sense. So a
// scenario never waits for the terminal, however many signals it raises.
package menu

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// ErrInterrupted is returned if Ctrl-C or the end of the context has ended the menu.
var ErrInterrupted = tea.ErrInterrupted

// Run shows the menu until the user leaves it. If a scenario runs then, Run waits for its
// end, but not longer than drain. After a second Ctrl-C it does not wait.
func Run(ctx context.Context, scenarios []scenario.Scenario, drain time.Duration) error {
	final, err := tea.NewProgram(newModel(ctx, scenarios), tea.WithoutSignalHandler()).Run()
	if m, ok := final.(model); ok && m.run != nil && !m.stopping {
		m.run.cancel()
		select {
		case <-m.run.ended:
		case <-time.After(drain):
			err = errors.Join(err, errors.New("menu: the scenario has not ended within "+drain.String()))
		}
	}
	return err
}

// model is the state of the menu.
type model struct {
	ctx           context.Context
	scenarios     []scenario.Scenario
	width, height int

	cursor int  // index of the chosen scenario
	run    *run // nil while no scenario runs

	stopping bool     // the run is cancelled
	finished bool     // a scenario has ended, and a key returns to the list
	output   []string // output of the last run, with the result at the end
	signals  window

	typing bool // a filter
	draft  string
}

func newModel(ctx context.Context, scenarios []scenario.Scenario) model {
	m := model{ctx: ctx, scenarios: scenarios, width: 80, height: 24}
	m.signals.reset()
	return m
}

// Init waits for the end of the context.
func (m model) Init() tea.Cmd {
	return func() tea.Msg {
		<-m.ctx.Done()
		return tea.Interrupt()
	}
}

// Update changes the model for a message.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case frame:
		return m.show(msg)
	case tea.KeyPressMsg:
		switch {
		case msg.String() == "ctrl+c":
			return m.interrupt()
		case m.typing:
			return m.edit(msg), nil
		}
		return m.key(msg.String())
	}
	return m, nil
}

// interrupt ends a scenario, or the menu. The second one ends the menu in any case.
func (m model) interrupt() (tea.Model, tea.Cmd) {
	if m.run == nil || m.stopping {
		return m, tea.Interrupt
	}
	m.run.cancel()
	m.stopping = true
	return m, nil
}

func (m model) key(key string) (tea.Model, tea.Cmd) {
	switch {
	case key == "/":
		m.typing, m.draft = true, m.signals.filter
	case key == "+":
		m.signals.sample(+1)
	case key == "-":
		m.signals.sample(-1)
	case m.run != nil: // other keys have no effect now
	case m.finished:
		m.finished = false
	case key == "q":
		return m, tea.Quit
	case key == "up", key == "k":
		m.cursor = max(m.cursor-1, 0)
	case key == "down", key == "j":
		m.cursor = min(m.cursor+1, len(m.scenarios)-1)
	case key == "enter":
		return m.start()
	}
	return m, nil
}

func (m model) start() (tea.Model, tea.Cmd) {
	if len(m.scenarios) == 0 {
		return m, nil
	}
	var play tea.Cmd
	m.run, play = start(m.ctx, m.scenarios[m.cursor])
	m.stopping, m.output = false, nil
	m.signals.reset()
	return m, tea.Batch(play, m.run.next())
}

// edit changes the filter while it is typed.
func (m model) edit(key tea.KeyPressMsg) tea.Model {
	switch key.String() {
	case "enter":
		m.typing = false
		m.signals.setFilter(m.draft)
	case "esc":
		m.typing = false
	case "backspace":
		if runes := []rune(m.draft); len(runes) > 0 {
			m.draft = string(runes[:len(runes)-1])
		}
	default:
		m.draft += key.Text
	}
	return m
}

// show adds the news of the run.
func (m model) show(f frame) (tea.Model, tea.Cmd) {
	m.output = append(m.output, f.lines...)
	m.output = m.output[max(0, len(m.output)-maxLines):]
	m.signals.add(f.signals)
	if !f.ended {
		return m, m.run.next()
	}
	m.output = append(m.output, result(f.err)...)
	m.run, m.finished = nil, true
	return m, nil
}

// result are the lines below the output of a scenario.
func result(err error) (lines []string) {
	if p, ok := errors.AsType[*core.PanicError](err); ok {
		lines = splitLines(p.Stack)
	}
	if err != nil {
		lines = append(lines, "failed: "+err.Error())
	}
	return append(lines, "press any key to return to the list")
}
