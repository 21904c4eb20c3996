package top

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"
)

// interval is the time between an answer and the next request.
const interval = time.Second

// A model is the state of the screen. Messages change it: keys, the size of the terminal, and
// answers of the page.
type model struct {
	ctx           context.Context
	client        *client
	width, height int

	path   []view // open views; the last one is shown
	asked  int    // how many requests were sent; only the answer of the last one counts
	answer        // what is shown; its error says why there is no newer one

	cursor   int     // index of the chosen row
	chosen   string  // its id
	question *action // nil: none
	draft    string  // the number that is typed
	note     string  // result of the last action
}

// An answer of the page, with the number of its request.
type answer struct {
	request int
	title   string
	sent    time.Time // by the page
	rows    []row
	err     error
}

// again says that it is time for another request after the one of that number.
type again int

// acted is the result of an action.
type acted string

func newModel(ctx context.Context, c *client) *model {
	return &model{ctx: ctx, client: c, width: 80, height: 24, path: []view{overview}}
}

// Init begins to ask the page, and waits for the end of the context.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.ask(), func() tea.Msg {
		<-m.ctx.Done()
		return tea.Quit()
	})
}

// ask returns the command that asks for the view that is shown.
func (m *model) ask() tea.Cmd {
	m.asked++
	a, v := answer{request: m.asked}, m.path[len(m.path)-1]
	return func() tea.Msg {
		var frame object
		frame, a.sent, a.err = m.client.get(m.ctx, v)
		a.title, _ = frame["title"].(string)
		a.rows = frame.rows(v, clock{now: a.sent})
		return a
	}
}

// Update changes the model for a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case answer:
		if msg.request != m.asked {
			break
		}
		if m.err = msg.err; m.err == nil {
			msg.title = cmp.Or(msg.title, m.title)
			m.answer = msg
			m.follow()
		}
		return m, tea.Tick(interval, func(time.Time) tea.Msg { return again(msg.request) })
	case again:
		if int(msg) == m.asked {
			return m, m.ask()
		}
	case acted:
		m.note = string(msg)
		return m, m.ask()
	case tea.KeyPressMsg:
		if key := msg.String(); key == "ctrl+c" {
			return m, tea.Quit
		} else if m.question != nil {
			return m, m.reply(key)
		} else {
			return m, m.press(key)
		}
	}
	return m, nil
}

// follow keeps the chosen row when it has another place, and chooses a neighbour if it is
// gone.
func (m *model) follow() {
	if i := slices.IndexFunc(m.rows, func(r row) bool { return r.id == m.chosen }); i >= 0 {
		m.cursor = i
	}
	m.move(0)
}

// move chooses the row that is some rows below.
func (m *model) move(by int) {
	m.cursor = max(0, min(m.cursor+by, len(m.rows)-1))
	m.chosen = m.row().id
}

// row is the chosen row, which is empty if there is none.
func (m *model) row() (none row) {
	if m.cursor < len(m.rows) {
		return m.rows[m.cursor]
	}
	return none
}

// press does what a key is for, if no question is open.
func (m *model) press(key string) tea.Cmd {
	r := m.row()
	m.note = ""
	switch key {
	case "q":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.height / 2)
	case "pgdown":
		m.move(m.height / 2)
	case "enter":
		if r.opens.name != "" {
			r.opens.back = r.id
			return m.open(append(m.path, r.opens))
		}
	case "esc", "backspace":
		if len(m.path) > 1 {
			back := m.path[len(m.path)-1].back
			cmd := m.open(m.path[:len(m.path)-1])
			m.chosen = back
			return cmd
		}
	default:
		if i := slices.IndexFunc(r.acts, func(a action) bool { return a.key == key }); i >= 0 {
			m.question, m.draft = &r.acts[i], ""
		}
	}
	return nil
}

// open shows another view.
func (m *model) open(path []view) tea.Cmd {
	m.path, m.rows = path, nil
	m.move(0)
	return m.ask()
}

// reply takes a key as the answer to the question.
func (m *model) reply(key string) tea.Cmd {
	q := m.question
	limit := q.isLimit()
	switch {
	case limit && len(key) == 1 && key >= "0" && key <= "9" && len(m.draft) < 7:
		m.draft += key
		return nil
	case limit && key == "backspace":
		m.draft = m.draft[:max(0, len(m.draft)-1)]
		return nil
	case limit && key == "enter" && m.draft != "":
		q.body["limit"], _ = strconv.Atoi(m.draft)
	case limit && key != "esc":
		return nil
	case limit || key != "y":
		m.question, m.note = nil, "not done: "+q.text
		return nil
	}
	m.question = nil
	return func() tea.Msg {
		changed, err := m.client.act(m.ctx, q.body)
		switch {
		case err != nil:
			return acted(q.text + ": " + err.Error())
		case !changed:
			return acted(q.text + ": nothing had to be changed")
		}
		return acted("done: " + q.text)
	}
}
