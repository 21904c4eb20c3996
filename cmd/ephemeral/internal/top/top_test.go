package top

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

const secret = "a secret of 20 bytes"

// recorded is a status page with answers that were recorded. Some of their texts got control
// characters.
type recorded struct {
	*httptest.Server
	requests []string                  // for actions, the body
	instead  func(http.ResponseWriter) // nil: the recorded answer
}

func newRecorded(t *testing.T) *recorded {
	t.Setenv("EPHEMERAL_TOKEN", secret)
	p := &recorded{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		view := path.Base(r.URL.Path)
		asked := r.Method + " " + r.URL.String()
		if body, _ := io.ReadAll(r.Body); len(body) > 0 {
			asked = string(body)
		}
		p.requests = append(p.requests, asked)
		switch {
		case p.instead != nil:
			p.instead(w)
		case r.Header.Get("Authorization") != "Bearer "+secret:
			t.Errorf("%s has no token", asked)
		case view == "act":
			io.WriteString(w, `{"done":true}`)
		default:
			http.ServeFile(w, r, "testdata/"+view+".json")
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *recorded) answers(code int, body string) {
	p.instead = func(w http.ResponseWriter) {
		w.Header().Set("Location", "/login")
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func run(args ...string) (status int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	status = Run(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// The lines of -once are the same for the same page, and have no control characters.
func TestOnce(t *testing.T) {
	p := newRecorded(t)
	want, err := os.ReadFile("testdata/once.golden")
	if err != nil {
		t.Fatal(err)
	}
	status, out, errOut := run(p.URL+"/#fragment", "-once")
	if status != 0 || out != string(want) || errOut != "" {
		t.Errorf("status %d, %s\n%s", status, errOut, out)
	}
	slices.Sort(p.requests)
	if got := strings.Join(p.requests, "\n"); got != `GET /api/items?limit=200&queue=mails
GET /api/operations?limit=200&status=pending,running,suspended&coordinator=orders
GET /api/overview?
GET /api/signals?limit=200&sink=shop` {
		t.Error(got)
	}
}

func TestErrors(t *testing.T) {
	p := newRecorded(t)
	for _, test := range []struct {
		code  int    // 0: the recorded answers
		body  string // of that answer
		args  []string
		wants string
	}{
		{0, "", nil, "usage: ephemeral top [-once] URL"},
		{0, "", []string{p.URL, p.URL}, "usage: "},
		{0, "", []string{p.URL, "-twice"}, "flag provided but not defined: -twice"},
		{0, "", []string{p.URL}, "input or output is no terminal: use -once"},
		{0, "", []string{"-once", "localhost:80"}, `"localhost:80" is no address of a status page: one is http://localhost:8080/`},
		{0, "", []string{"-once", "http://\x1b[2J"}, `"http://\x1b[2J" is no address`},
		{0, "", []string{"-once", p.URL + "?token=x"}, "the address has a token, which all users of this machine can see: set EPHEMERAL_TOKEN"},
		{0, "", []string{"-once", "http://127.0.0.1:1/x?y"}, "no answer from http://127.0.0.1:1/x/: dial tcp 127.0.0.1:1: "},
		{401, `{"error":"no"}`, []string{"-once", p.URL}, "the page does not accept the token in EPHEMERAL_TOKEN"},
		{403, `{"error":"add it\u001b[2J to Options.Hosts"}`, []string{"-once", p.URL}, "the page refuses this: add it\ufffd[2J to Options.Hosts\n"},
		{400, `{"error":"there is no coordinator"}`, []string{"-once", p.URL}, "the page answers: there is no coordinator"},
		{404, "<html>", []string{"-once", p.URL}, "/ answers with status 404 Not Found, and points to /login, but it is no status page"},
		{302, "", []string{"-once", p.URL}, "/ answers with status 302 Found, and points to /login, "},
		{200, "<html>", []string{"-once", p.URL}, "/ answers, but it is no status page"},
		{200, "{}", []string{"-once", p.URL}, "/ answers, but it is no status page"},
	} {
		if p.instead = nil; test.code != 0 {
			p.answers(test.code, test.body)
		}
		if status, out, errOut := run(test.args...); status != 2 || out != "" || !strings.Contains(errOut, test.wants) {
			t.Errorf("%q: status %d, want %q, got %q %s", test.args, status, test.wants, errOut, out)
		}
	}
	t.Setenv("EPHEMERAL_TOKEN", "")
	p.answers(401, `{"error":"no"}`)
	if status, _, errOut := run("-once", p.URL); status != 2 || !strings.Contains(errOut, "the page needs a token: set EPHEMERAL_TOKEN to it") {
		t.Errorf("status %d, %s", status, errOut)
	}
}

// A user presses keys and looks at the screen.
type user struct {
	*model
	t    *testing.T
	page *recorded
}

func newUser(t *testing.T) user {
	p := newRecorded(t)
	c, err := newClient(p.URL, secret)
	if err != nil {
		t.Fatal(err)
	}
	u := user{newModel(t.Context(), c), t, p}
	u.Update(tea.WindowSizeMsg{Width: 200, Height: 40})
	u.Update(u.ask()())
	return u
}

// do gives a message to the model, and the results of its commands, except of timers.
func (u user) do(msg tea.Msg) {
	_, next := u.Update(msg)
	if _, isTimer := msg.(answer); next != nil && !isTimer {
		u.do(next())
	}
}

func (u user) press(keys ...string) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace}
	for _, k := range keys {
		key := tea.Key{Code: special[k]}
		if key.Code == 0 {
			key = tea.Key{Text: k, Code: []rune(k)[0]}
		}
		u.do(tea.KeyPressMsg(key))
	}
}

func (u user) expect(texts ...string) {
	u.t.Helper()
	for _, text := range texts {
		if !strings.Contains(ansi.Strip(u.View().Content), text) {
			u.t.Errorf("want %q on the screen:\n%s", text, ansi.Strip(u.View().Content))
		}
	}
}

func TestViews(t *testing.T) {
	u := newUser(t)
	u.expect("Demo\ufffd]0;owned\ufffd  09:13:00  "+u.page.URL+"/", "COORDINATOR  PENDING", "orders       1", "slow", "inventory.begun", "mails", "enter operations")
	u.press("enter")
	u.expect("OPERATION  COORDINATOR", "enter operation", "c cancel", "esc back")
	u.press("down", "enter")
	u.expect("REASON", "all 2 slots of lane")
	u.press("esc", "esc")
	for range 20 {
		u.press("j")
	}
	u.press("enter")
	u.expect("HELD", "schedule.fired   shop  949", "t retract")
	u.press("esc", "k", "up")
	u.expect("p pauseQueue")
	u.press("enter")
	u.expect("ITEM", "the address is unknown\ufffd31m", "a again  d discard")
}

// Nothing is changed before the user has said yes.
func TestActions(t *testing.T) {
	u := newUser(t)
	asked := func() (bodies []string) {
		for _, r := range u.page.requests {
			if strings.HasPrefix(r, "{") {
				bodies = append(bodies, r)
			}
		}
		u.page.requests = nil
		return bodies
	}
	for _, test := range []struct {
		keys  string
		asks  string
		reply string
		sent  string
		note  string
	}{
		{"p", "pause coordinator orders? y does it", "y", `{"action":"pause","coordinator":"orders"}`, "done: pause coordinator orders"},
		{"p", "pause coordinator orders?", "n", "", "not done: pause coordinator orders"},
		{"p", "pause coordinator orders?", "enter", "", "not done: "},
		{"l", "limit coordinator orders, new limit: ", "x 1 2 backspace 6 enter", `{"action":"limit","coordinator":"orders","limit":16}`, "done: limit"},
		{"l", "enter sets it, esc does not", "enter 4 esc", "", "not done: limit coordinator orders"},
		{"enter j c", "cancel operation ", "y", `{"action":"cancel","coordinator":"orders","operation":`, "done: cancel operation "},
		{"esc q", "", "", "", ""},
	} {
		u.press(strings.Fields(test.keys)...)
		u.expect(test.asks)
		if sent := asked(); len(sent) > 0 {
			t.Errorf("%s: sent %s before the reply", test.keys, sent)
		}
		u.press(strings.Fields(test.reply)...)
		u.expect(test.note)
		if sent := strings.Join(asked(), " "); !strings.HasPrefix(sent, test.sent) || test.sent == "" && sent != "" {
			t.Errorf("%s: sent %s, want %s", test.keys, sent, test.sent)
		}
	}

	u = newUser(t)
	u.press("p")
	u.page.answers(403, `{"error":"pause is not allowed"}`)
	u.press("y")
	u.page.instead = nil
	u.expect("pause coordinator orders: the page refuses this: pause is not allowed")
	u.press("p")
	u.page.answers(200, `{"done":false}`)
	u.press("y")
	u.expect("pause coordinator orders: nothing had to be changed")
}

// While the page does not answer, the screen keeps what it shows, and says so.
func TestComesBack(t *testing.T) {
	u := newUser(t)
	u.page.answers(502, "")
	u.do(again(u.asked))
	u.expect("not up to date since 09:13:00 UTC, and asking again: ", "status 502", "orders")
	u.page.instead = nil
	u.do(again(u.asked - 1)) // belongs to another view
	u.expect("not up to date")
	u.do(again(u.asked))
	u.expect("Demo")
}

// The chosen row is still chosen if its place changes. If it is gone, its neighbour is.
func TestChosenRowMoves(t *testing.T) {
	u := newUser(t)
	u.press("enter", "down")
	chosen, rows := u.chosen, u.rows
	for _, test := range []struct {
		rows []row
		want string
	}{
		{[]row{rows[1], rows[0]}, chosen}, {rows, chosen}, {rows[:1], rows[0].id}, {nil, ""},
	} {
		if u.Update(answer{request: u.asked, rows: test.rows}); u.chosen != test.want {
			t.Errorf("chosen is %q, want %q", u.chosen, test.want)
		}
	}
	u.press("up", "down", "enter", "c")
}

// Whatever a page sends, and whatever is pressed, the screen has the size of the terminal and
// no control characters but our own.
func TestAnyPage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := []any{"short", strings.Repeat("wide 界 ", 40), "\x1b[31mred\x1b[2J\u009b2J", "a\tb\r\nc\x00\u202e", nil, true, json.Number("1e999"), []any{nil}, map[string]any{"name": 1}}
	keys := []string{"enter", "esc", "up", "down", "backspace", "y", "n", "c", "p", "l", "t", "a", "d", "7"}
	u := newUser(t)
	for range 2000 {
		switch v := u.path[len(u.path)-1]; random.IntN(4) {
		case 0:
			u.do(tea.WindowSizeMsg{Width: random.IntN(120), Height: random.IntN(40)})
		case 1:
			frame := object{"title": "\x1bc"}
			for _, k := range kinds[v.name] {
				thing := map[string]any{"can": []any{"pause", "resume", "limit", "cancel", "retract", "again"}}
				for column := range strings.FieldsSeq(k.columns) {
					thing[column] = texts[random.IntN(len(texts))]
				}
				frame[k.path] = []any{thing, nil, 7}
			}
			u.Update(answer{request: u.asked, rows: frame.rows(v, clock{})})
		default:
			if key := keys[random.IntN(len(keys))]; key != "enter" || len(u.path) < 4 {
				u.press(key)
			}
		}
		screen := u.View().Content
		rows := strings.Split(screen, "\n")
		if len(rows) != max(2, u.height) {
			t.Fatalf("%d rows of %d", len(rows), u.height)
		}
		for _, own := range []string{bold, inverse, red, reset, "\n"} {
			screen = strings.ReplaceAll(screen, own, "")
		}
		if i := strings.IndexFunc(screen, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("a control character at %q", screen[i:])
		}
		for _, row := range rows {
			if n := ansi.StringWidth(row); n > u.width {
				t.Fatalf("%d columns of %d: %q", n, u.width, row)
			}
		}
	}
}
