package statuspage_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// A token admits a script by its header, and a browser by a link that leaves a cookie.
func TestToken(t *testing.T) {
	const secret = "an open sesame; \"ä\""
	for _, short := range []string{"", "fifteen letters"} {
		_, err := statuspage.Token(short)
		assert.EqualError(t, err, fmt.Sprintf("statuspage: Token needs a secret of at least 16 bytes, and this one has %d", len(short)))
	}
	view, err := statuspage.Token(secret)
	require.NoError(t, err)
	c := newCoordinator(t, block, core.Options{Name: "c"})
	p := newPage(t, statuspage.Options{View: view, Allow: anything, Coordinators: []core.Inspector{c}})
	ask := func(method, target, body string, headers ...string) *http.Response {
		return request(p, method, target, body, func(r *http.Request) {
			r.RemoteAddr, r.Host = "192.0.2.1:80", "status.example" // a proxy may be anywhere
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
		}).Result()
	}
	for name, headers := range map[string][]string{
		"no token": nil, "another token": {"Authorization", "Bearer an open barley; \"ä\""}, "another scheme": {"Authorization", "Basic " + secret},
		"another cookie": {"Cookie", "statuspage=" + escaped(secret)},
	} {
		for _, target := range []string{"/", "/api/overview", "/?token=", "/?token=x"} {
			w := ask("GET", target, "", headers...)
			assert.Equal(t, 401, w.StatusCode, name)
			assert.Equal(t, "Bearer", w.Header.Get("WWW-Authenticate"), name)
			assert.Empty(t, w.Cookies(), name)
		}
		assert.Equal(t, 401, ask("POST", "/api/act?token="+escaped(secret), `{"action":"pause","coordinator":"c"}`, headers...).StatusCode, "a link changes nothing")
	}
	assert.False(t, c.Stats().Paused)
	assert.Equal(t, 200, ask("GET", "/api/overview", "", "Authorization", "bearer "+secret).StatusCode)

	for target, location := range map[string]string{
		"/?token=" + escaped(secret):                    "./",
		"/api/signals?limit=3&token=" + escaped(secret): "./signals?limit=3",
		"//evil.example?token=" + escaped(secret):       "./evil.example",
	} {
		w := ask("GET", target, "")
		assert.Equal(t, 303, w.StatusCode)
		assert.Equal(t, location, w.Header.Get("Location"), "relative, as the page may have any prefix")
		require.Len(t, w.Cookies(), 1)
		cookie := w.Cookies()[0]
		assert.True(t, cookie.HttpOnly && cookie.SameSite == http.SameSiteLaxMode && !cookie.Secure && cookie.Path == "", cookie)
		assert.NotContains(t, cookie.String(), "sesame", "a server on another port gets the cookie, too")
		assert.Equal(t, 200, ask("GET", "/", "", "Cookie", cookie.Name+"="+cookie.Value).StatusCode)
		again := ask("GET", target, "", "Cookie", cookie.Name+"="+cookie.Value)
		assert.Equal(t, []any{303, location}, []any{again.StatusCode, again.Header.Get("Location")}, "a person that opens the link again does not keep the secret in the address")
		assert.Equal(t, 200, ask("POST", "/api/act", `{"action":"pause","coordinator":"c"}`, "Cookie", cookie.Name+"="+cookie.Value).StatusCode)
		other, err := statuspage.Token("another secret of another page")
		require.NoError(t, err)
		of := request(newPage(t, statuspage.Options{View: other}), "GET", "/?token="+escaped("another secret of another page"), "", nil).Result().Cookies()[0]
		assert.NotEqual(t, of.Name, cookie.Name, "pages on two ports of a host do not replace each other's cookies")
	}

	// A Token can be a part of another View.
	either := newPage(t, statuspage.Options{View: func(r *http.Request) bool { return statuspage.Loopback(r) || view(r) }})
	assert.Equal(t, 200, request(either, "GET", "/", "", nil).Code)
	assert.Equal(t, 401, request(either, "GET", "/", "", func(r *http.Request) { r.RemoteAddr = "192.0.2.1:80" }).Code)
}

// Only refusals by Allow raise a signal, at most one a second, with names that the page
// shows. All other refusals are only counted.
func TestRefusalsAreNotAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 100})
		sink.Raise("old.fact")
		c := newCoordinator(t, block, core.Options{Name: "c"})
		p := newPage(t, statuspage.Options{
			View: statuspage.Loopback, Sink: sink, Coordinators: []core.Inspector{c}, Schedules: []inspect.Schedules{&plans{names: []string{"report"}}},
			Queues: []inspect.StoredQueue{&store{name: "q"}},
			Allow:  func(_ *http.Request, a statuspage.Action) bool { return a.Kind == "resume" },
		})
		foreign := func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }
		long := strings.Repeat("x", 10_000)
		for range 200 {
			request(p, "POST", "/api/act", `{"action":"pause","coordinator":"`+long+`"}`, foreign)
			request(p, "POST", "/api/act", `{"action":"pause"`, nil)
		}
		assert.EqualValues(t, 1, sink.Stats().Raised)
		assert.Equal(t, statuspage.Stats{Requests: 400, CrossSite: 200, Unreadable: 200}, p.Stats())
		for i := range 100 {
			body := `{"action":"pause","coordinator":"c"}`
			switch i / 20 {
			case 1:
				body = `{"action":"pause","coordinator":"` + long + `"}`
			case 2:
				body = `{"action":"runNow","schedules":"nightly","schedule":"report"}`
			case 3:
				body = `{"action":"runNow","schedules":"nightly","schedule":"` + long + `"}`
			case 4:
				body = `{"action":"discardAll","queue":"q","key":"` + long + `"}`
			}
			assert.Equal(t, 403, request(p, "POST", "/api/act", body, nil).Code)
			time.Sleep(50 * time.Millisecond)
		}
		var keys []string
		for s, a := range statuspage.Refused.Sense(sink, signals.Query{}) {
			keys = append(keys, s.Key)
			assert.Less(t, len(fmt.Sprint(a)), 1200)
		}
		assert.Equal(t, []string{"c", "", "report", "", "q"}, keys)
		assert.True(t, sink.Has("old.fact"))
		act(t, p, `{"action":"resume","coordinator":"c"}`)
		s := p.Stats()
		assert.Equal(t, statuspage.Stats{Requests: 501, CrossSite: 200, Unreadable: 200, Denied: 100, Acted: 1}, s)
		assert.Equal(t, s.Requests, s.Acted+s.Denied+s.ReadOnly+s.CrossSite+s.Unreadable)
		assert.Equal(t, `{"requests":501,"acted":1,"denied":100,"readOnly":0,"crossSite":200,"unreadable":200}`, s.String())
		assert.Len(t, s.LogValue().Group(), 6)
	})
}

// broken panics when the page calls it.
type broken struct{ core.Control }

func (broken) Stats() core.Stats { panic("in Stats") }

type brokenStore struct{ store }

func (*brokenStore) Status(context.Context) (inspect.QueueStatus, error) { panic("in Status") }

type brokenPlans struct{ plans }

func (*brokenPlans) Status() []inspect.ScheduleStatus { panic("in Plans") }

// A panic in code of the program affects only its own row.
func TestPanicsOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, block, core.Options{Name: "c"})
		p := newPage(t, statuspage.Options{
			Coordinators: []core.Inspector{broken{c.Control}, c}, Queues: []inspect.StoredQueue{&brokenStore{store{name: "q"}}, &store{name: "r"}},
			Schedules: []inspect.Schedules{&brokenPlans{}, &plans{names: []string{"report"}}},
		})
		for range 3 {
			o := get(t, p, "overview")
			for _, list := range []struct{ name, text string }{{"coordinators", "in Stats"}, {"queues", "in Status"}, {"schedules", "in Plans"}} {
				assert.Contains(t, o.at(list.name, 0, "error"), list.text)
				assert.Nil(t, o.at(list.name, 1, "error"))
			}
			assert.Equal(t, []any{"c", "c-2"}, o.each("coordinators", "id"))
			time.Sleep(3 * time.Second) // the sampler and the store are asked again
		}
	})
}

// post begins a request for an action, and returns the connection.
func (s *site) post(t *testing.T, body string, headers ...string) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	s.conns <- addressed{there, net.IPv4(127, 0, 0, 1)}
	t.Cleanup(func() { here.Close() })
	_, err := fmt.Fprintf(here, "POST /api/act HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n%s\r\n%s", strings.Join(headers, ""), body)
	require.NoError(t, err)
	return here
}

// A request whose body does not come ends after 5 seconds, or after one second when the
// page is closed.
func TestUnfinishedActions(t *testing.T) {
	answered := func(t *testing.T, conn net.Conn) (int, time.Duration) {
		start := time.Now()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		took := time.Since(start)
		io.Copy(io.Discard, conn) // until the server ends it
		assert.LessOrEqual(t, time.Since(start), 6*time.Second)
		return answer.StatusCode, took
	}
	for _, test := range []struct {
		name  string
		opts  statuspage.Options
		heads string
		code  int
		took  time.Duration
		close bool
	}{
		{"read-only", statuspage.Options{}, "", 403, 0, false},
		{"cross-site", statuspage.Options{View: statuspage.Loopback, Allow: anything}, "Origin: https://evil.example\r\n", 403, 0, false},
		{"stalled", statuspage.Options{View: statuspage.Loopback, Allow: anything}, "", 400, 5 * time.Second, false},
		{"closed", statuspage.Options{View: statuspage.Loopback, Allow: anything}, "", 400, 2 * time.Second, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPage(t, test.opts)
				s := serveSite(t, &http.Server{Handler: p})
				conn := s.post(t, `{"action":`, test.heads)
				if test.close {
					time.AfterFunc(time.Second, func() { p.Close() })
				}
				code, took := answered(t, conn)
				assert.Equal(t, test.code, code)
				assert.Equal(t, test.took, took)
			})
		})
	}
}

// Over HTTP/2, an unfinished body is one of many streams of a connection.
func TestUnfinishedActionOverHTTP2(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("it takes a second: set EPHEMERAL_LONG")
	}
	p := newPage(t, statuspage.Options{View: statuspage.Loopback, Allow: anything})
	s := httptest.NewUnstartedServer(p)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	body, more := io.Pipe()
	defer more.Close()
	go func() {
		more.Write([]byte(`{"action":`))
		p.Close()
	}()
	answer, err := s.Client().Post(s.URL+"/api/act", "application/json", body)
	require.NoError(t, err)
	defer answer.Body.Close()
	assert.Equal(t, []int{2, 400}, []int{answer.ProtoMajor, answer.StatusCode})
}

// Fault avoided: a frame looks through the whole sink for facts that are held.
func TestHeldFactsCostNoScan(t *testing.T) {
	size := 200_000
	if os.Getenv("EPHEMERAL_LONG") != "" {
		size = 1_000_000
	}
	sink := signals.NewSink(signals.SinkOptions{Capacity: size})
	sink.Hold("db.down", "", 0)
	for range size {
		sink.Raise("noise")
	}
	frame, end, err := statuspage.Frames(newPage(t, statuspage.Options{Sinks: map[string]*signals.Sink{"s": sink}}), "view=signals")
	require.NoError(t, err)
	defer end()
	fastest := func(n int, do func()) time.Duration {
		least := time.Hour
		for range n {
			start := time.Now()
			do()
			least = min(least, time.Since(start))
		}
		return least
	}
	scan := fastest(2, func() {
		for range sink.Sense(signals.Query{}) {
		}
	})
	assert.Less(t, fastest(20, func() { sink.Raise("noise"); frame() }), scan/20, "a look at every signal takes %v", scan)
	assert.Equal(t, []any{"db.down"}, decode(t, string(frame())).each("held", "name"))
}

// Whatever is held, released and raised between frames, the frames show the oldest held signals.
func TestHeldFactsAreExact(t *testing.T) {
	rounds := uint64(2)
	if os.Getenv("EPHEMERAL_LONG") != "" {
		rounds = 100
	}
	for seed := range rounds {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 3000})
		p := newPage(t, statuspage.Options{Sinks: map[string]*signals.Sink{"s": sink}})
		frame, end, err := statuspage.Frames(p, "view=signals")
		require.NoError(t, err)
		random := rand.New(rand.NewPCG(seed, 0))
		type fact struct {
			key     string
			release func()
		}
		var facts []fact
		for i := range 100 {
			for range random.IntN(4) * random.IntN(4) * 4 {
				key := fmt.Sprint(i, "-", len(facts))
				facts = append(facts, fact{key, sink.Hold("gate", key, 0)})
			}
			for range random.IntN(len(facts)/5 + 1) {
				at := random.IntN(len(facts))
				facts[at].release()
				facts = append(facts[:at], facts[at+1:]...)
			}
			for range random.IntN(2) * random.IntN(1200) { // at times too many for a frame
				sink.Raise("noise")
			}
			o := decode(t, string(frame()))
			var want []any
			for _, f := range facts[:min(len(facts), 100)] {
				want = append(want, f.key)
			}
			require.Equal(t, want, o.each("held", "key"), "seed %d, frame %d", seed, i)
			require.EqualValues(t, len(facts), o["allHeld"])
		}
		end()
	}
}
