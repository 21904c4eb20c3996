package statuspage_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

func anybody(*http.Request) bool                     { return true }
func anything(*http.Request, statuspage.Action) bool { return true }

func newPage(t testing.TB, opts statuspage.Options) *statuspage.Page {
	t.Helper()
	p, err := statuspage.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// block is a body that waits until its context ends.
func block(ctx context.Context, _ string) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func newCoordinator(t testing.TB, work core.Work[string], opts core.Options) *core.Coordinator[string] {
	t.Helper()
	c, err := core.NewCoordinator(work, opts)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func enqueue(t testing.TB, c *core.Coordinator[string], items ...string) (ids []core.OperationID) {
	t.Helper()
	for _, item := range items {
		id, err := c.Enqueue(context.Background(), item)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	return ids
}

// request asks the page as a program on the same machine.
func request(p http.Handler, method, target, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:4711", "localhost:8080"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// get returns the JSON of an answer that must be 200.
func get(t testing.TB, p http.Handler, target string) object {
	t.Helper()
	w := request(p, "GET", "/api/"+target, "", nil)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	return decode(t, w.Body.String())
}

func act(t testing.TB, p http.Handler, format string, args ...any) (int, object) {
	t.Helper()
	w := request(p, "POST", "/api/act", fmt.Sprintf(format, args...), nil)
	return w.Code, decode(t, w.Body.String())
}

// An object is what JSON decodes to.
type object map[string]any

func decode(t testing.TB, text string) (o object) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &o), text)
	return o
}

// at follows a path of names and indices.
func (o object) at(path ...any) any {
	var v any = map[string]any(o)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			v = v.([]any)[step]
		}
	}
	return v
}

// each returns one field of every object of a list.
func (o object) each(list, field string) (all []any) {
	for _, v := range o.at(list).([]any) {
		all = append(all, v.(map[string]any)[field])
	}
	return all
}

func id(n core.OperationID) any { return float64(n) }

// store is a queue whose store can fail or hang.
type store struct {
	name  string
	hangs atomic.Bool
	calls []string
	dead  []inspect.StoredItem
	steps []inspect.ItemStep // of the flow of each item, before one more
	last  inspect.ItemQuery
	asked atomic.Int32
}

func (s *store) Name() string { return s.name }

func (s *store) Status(ctx context.Context) (inspect.QueueStatus, error) {
	s.asked.Add(1)
	if s.hangs.Load() {
		<-ctx.Done()
		return inspect.QueueStatus{}, ctx.Err()
	}
	return inspect.QueueStatus{Counts: []inspect.StateCount{{State: "dead", Items: len(s.dead)}}, Oldest: 3 * time.Second, Nodes: 2}, nil
}

func (s *store) Items(_ context.Context, match inspect.ItemQuery) (page inspect.ItemPage, _ error) {
	s.asked.Add(1)
	s.last = match
	for _, item := range s.dead {
		if fmt.Sprint(item.ID) > match.After && len(page.Items) < match.Limit {
			page.Items, page.Next = append(page.Items, item), fmt.Sprint(item.ID)
		}
	}
	return page, nil
}

func (s *store) call(name string, id int64) (bool, error) {
	s.calls = append(s.calls, fmt.Sprint(name, id))
	if id == 13 {
		return false, errors.New("store: disk full at secret")
	}
	return id == 7, nil
}

func (s *store) Item(_ context.Context, id int64) (d inspect.ItemDetail, ok bool, err error) {
	for _, item := range s.dead {
		if item.ID == id {
			d = inspect.ItemDetail{StoredItem: item, Why: "why: " + item.Err, History: []inspect.ItemAttempt{{State: "retry", Node: item.Lane, Started: time.Now(), Err: item.Err}}}
			d.Steps = append(slices.Clone(s.steps), inspect.ItemStep{Name: item.Err, State: item.State, Signal: item.Err})
			return d, true, nil
		}
	}
	return d, id == 13, nil
}

func (s *store) Count(_ context.Context, match inspect.ItemQuery) (int, error) {
	s.last = match
	return len(s.dead), nil
}

func (s *store) AgainAll(_ context.Context, match inspect.ItemQuery) (int, error) {
	s.calls, s.last = append(s.calls, "againAll"), match
	return len(s.dead), nil
}

func (s *store) DiscardAll(ctx context.Context, match inspect.ItemQuery) (int, error) {
	s.calls, s.last = append(s.calls, "discardAll"), match
	return 3, errors.New("store: disk full at secret")
}

func (s *store) CancelAll(_ context.Context, match inspect.ItemQuery, reason string) (int, error) {
	s.calls, s.last = append(s.calls, "cancelAll "+reason), match
	return 0, nil
}

func (s *store) Again(_ context.Context, id int64) (bool, error)   { return s.call("again", id) }
func (s *store) Discard(_ context.Context, id int64) (bool, error) { return s.call("discard", id) }
func (s *store) Pause(context.Context) error                       { s.call("pause", 0); return nil }
func (s *store) Resume(context.Context) error                      { s.call("resume", 0); return nil }

// plans are schedules.
type plans struct {
	names []string
	fired core.OperationID
	calls []string
}

func (p *plans) Name() string { return "nightly" }

func (p *plans) Status() (all []inspect.ScheduleStatus) {
	for _, name := range p.names {
		all = append(all, inspect.ScheduleStatus{Name: name, When: "0 3 * * *", Next: time.Now().Add(time.Hour), Description: "about " + name})
	}
	return all
}

func (p *plans) Firings(name string) (all []inspect.Firing) {
	for range 30 {
		all = append(all, inspect.Firing{State: "failed", Operation: p.fired, Err: name})
	}
	return all
}

func (p *plans) Pause(pattern string) int  { p.calls = append(p.calls, "pause "+pattern); return 1 }
func (p *plans) Resume(pattern string) int { p.calls = append(p.calls, "resume "+pattern); return 0 }

func (p *plans) RunNow(_ context.Context, name string) error {
	p.calls = append(p.calls, "run "+name)
	return nil
}

// counted counts how often its Stats are asked for.
type counted struct {
	core.Control
	asked atomic.Int32
}

func (c *counted) Stats() core.Stats {
	c.asked.Add(1)
	return c.Control.Stats()
}

// site is a real http.Server whose connections are pipes, which work in a bubble. They have
// no buffer: a client that does not read stalls the server at once.
type site struct {
	*http.Server
	conns chan net.Conn
	once  sync.Once
	ended chan struct{}
}

func newSite(t testing.TB, h http.Handler) *site {
	// A stream outlasts these times.
	return serveSite(t, &http.Server{Handler: h, ReadTimeout: time.Second, WriteTimeout: time.Second})
}

func serveSite(t testing.TB, server *http.Server) *site {
	server.ErrorLog = log.New(io.Discard, "", 0)
	s := &site{Server: server, conns: make(chan net.Conn), ended: make(chan struct{})}
	go s.Serve(s)
	t.Cleanup(func() { s.Server.Close() })
	return s
}

func (s *site) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

func (s *site) Close() error   { s.once.Do(func() { close(s.ended) }); return nil }
func (s *site) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// addressed is a connection from a peer.
type addressed struct {
	net.Conn
	peer net.IP
}

func (a addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: a.peer, Port: 4711} }

// A client is one open request for a stream.
type client struct {
	net.Conn
	*http.Response
	lines  *bufio.Reader
	events atomic.Int32
	last   atomic.Value // data of the newest event
}

// open asks for a stream from a peer.
func (s *site) open(t testing.TB, peer int, query string) *client {
	t.Helper()
	here, there := net.Pipe()
	s.conns <- addressed{there, net.IPv4(127, 0, byte(peer>>8), byte(peer))}
	t.Cleanup(func() { here.Close() })
	r, err := http.NewRequest("GET", "http://localhost/api/stream?"+query, nil)
	require.NoError(t, err)
	require.NoError(t, r.Write(here))
	c := &client{Conn: here, lines: bufio.NewReaderSize(here, 1<<16)}
	c.Response, err = http.ReadResponse(c.lines, r)
	require.NoError(t, err)
	return c
}

// read reads events until the stream ends, and waits after each.
func (c *client) read(pause time.Duration) {
	lines := bufio.NewScanner(c.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			c.last.Store(data)
			c.events.Add(1)
			time.Sleep(pause)
		}
	}
}

func escaped(text string) string { return url.QueryEscape(text) }

func readAll(t testing.TB, r io.Reader) string {
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}
