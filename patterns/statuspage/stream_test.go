package statuspage_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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

// The first frame comes at once. Later frames come when something has changed, at most four
// times a second.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		p := newPage(t, statuspage.Options{Sinks: map[string]*signals.Sink{"s": sink}})
		s := newSite(t, p)
		c := s.open(t, 1, "view=signals")
		assert.Equal(t, "text/event-stream; charset=utf-8", c.Header.Get("Content-Type"))
		assert.Equal(t, "nosniff", c.Header.Get("X-Content-Type-Options"))
		go c.read(0)
		synctest.Wait()
		assert.EqualValues(t, 1, c.events.Load(), "at once")
		assert.Equal(t, "2000-01-01T00:00:00.000Z", decode(t, c.last.Load().(string))["time"])
		time.Sleep(10 * time.Second)
		assert.EqualValues(t, 1, c.events.Load(), "nothing has changed")
		sink.Raise("a.b")
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		assert.EqualValues(t, 2, c.events.Load())
		assert.Equal(t, []any{"a.b"}, decode(t, c.last.Load().(string)).each("signals", "name"))
		for range 2000 {
			sink.Raise("a.c")
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		assert.EqualValues(t, 2+8, c.events.Load(), "four a second")
		body := decode(t, c.last.Load().(string))
		assert.EqualValues(t, 2001, body.at("families", 0, "count"))
		assert.Len(t, body["signals"], 50)

		require.NoError(t, p.Close())
		require.NoError(t, p.Close())
		require.NoError(t, s.Shutdown(t.Context()), "all streams have ended")
		w := request(p, "GET", "/api/overview", "", nil)
		assert.Equal(t, 200, w.Code, "only streams end")
	})
}

// A comment keeps proxies from closing a quiet stream.
func TestStreamKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, statuspage.Options{})
		c := newSite(t, p).open(t, 1, "view=overview")
		time.AfterFunc(31*time.Second, func() { p.Close() })
		text := readAll(t, c.Body)
		assert.Equal(t, 2, strings.Count(text, "\n\n:\n\n")+strings.Count(text, "\n\n:\n\n:\n\n"))
	})
}

func TestStreamOfItemsAsksEveryTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &store{name: "q"}
		c := newSite(t, newPage(t, statuspage.Options{Queues: []inspect.StoredQueue{q}})).open(t, 1, "view=items")
		go c.read(0)
		time.Sleep(9 * time.Second)
		assert.EqualValues(t, 5, q.asked.Load())
	})
}

// Fault avoided: clients that read slowly, or not at all, and many clients. Now a frame is
// made once for all clients, and no client waits for another.
func TestStreamManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, func(context.Context, string) error { time.Sleep(time.Millisecond); return nil }, core.Options{Name: "c", MaxConcurrency: 1})
		seen := &counted{Control: c.Control}
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{seen}, MaxClients: 200})
		s := newSite(t, p)
		clients := make([]*client, 100)
		for i := range clients {
			clients[i] = s.open(t, i, "view=overview")
			if i > 0 {
				go clients[i].read(0)
			}
		}
		stalled, slow := clients[0], s.open(t, 500, "view=overview") // stalled does not read
		go slow.read(3 * time.Second)
		enqueue(t, c, make([]string, 100)...)
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		assert.Less(t, seen.asked.Load(), int32(20), "12 frames and 3 samples for all")
		for _, c := range clients[1:] {
			assert.Equal(t, clients[1].last.Load(), c.last.Load())
			assert.Equal(t, clients[1].events.Load(), c.events.Load())
		}
		time.Sleep(time.Second)
		enqueue(t, c, make([]string, 100)...)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Less(t, slow.events.Load(), clients[1].events.Load(), "a slow client skips frames")
		time.Sleep(3 * time.Second)
		assert.EqualValues(t, 200, decode(t, slow.last.Load().(string)).at("coordinators", 0, "succeeded"), "and gets the newest")

		_, err := stalled.Conn.Write([]byte("x"))
		assert.Error(t, err, "the server has given up")
		require.NoError(t, p.Close())
		require.NoError(t, s.Shutdown(t.Context()))
		time.Sleep(time.Minute) // the slow client reads the end
	})
}

// A browser opens six connections to a site over HTTP/1. Further tabs poll.
func TestStreamLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, statuspage.Options{MaxClients: 6})
		s := newSite(t, p)
		codes := func(peer, n int) (all []int) {
			for range n {
				c := s.open(t, peer, "view=overview")
				if all = append(all, c.StatusCode); c.StatusCode == 503 {
					assert.NotEmpty(t, c.Header.Get("Retry-After"))
				}
				if c.StatusCode == 200 {
					go c.read(0)
				}
			}
			return all
		}
		assert.Equal(t, []int{200, 200, 200, 200, 503, 503, 503}, codes(1, 7), "seven tabs")
		assert.Equal(t, 200, request(p, "GET", "/api/overview", "", nil).Code, "the others ask")
		assert.Equal(t, []int{200, 200, 503}, codes(2, 3), "MaxClients")

		gone := s.open(t, 3, "view=overview")
		assert.Equal(t, 503, gone.StatusCode)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, newPage(t, statuspage.Options{MaxClients: 1}))
		c := s.open(t, 1, "view=overview")
		go c.read(0)
		synctest.Wait()
		c.Conn.Close()
		synctest.Wait()
		assert.Equal(t, 200, s.open(t, 1, "view=overview").StatusCode, "one that is gone makes room")

		none := newPage(t, statuspage.Options{MaxClients: -1})
		assert.Equal(t, 503, newSite(t, none).open(t, 1, "view=overview").StatusCode)
		w := request(newPage(t, statuspage.Options{}), "GET", "/api/stream?view=overview", "", nil)
		assert.Equal(t, 503, w.Code, "a writer without deadlines")
	})
}

// A stream reports an error, and goes on.
func TestStreamFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, func(context.Context, string) error { return nil }, core.Options{Name: "c"})
		n := enqueue(t, c, "a")[0]
		synctest.Wait()
		sink := signals.NewSink(signals.SinkOptions{})
		var p *statuspage.Page
		p = newPage(t, statuspage.Options{
			Coordinators: []core.Inspector{c}, Sinks: map[string]*signals.Sink{"s": sink},
			Redact: func(text string) string {
				switch text {
				case "panic":
					panic("in Redact")
				case "close":
					p.Close()
				}
				return text
			},
		})
		s := newSite(t, p)
		operation, raised, other := s.open(t, 1, fmt.Sprintf("view=operation&id=%d", n)), s.open(t, 1, "view=signals"), s.open(t, 1, "view=signals")
		var ended sync.WaitGroup
		for _, c := range []*client{operation, raised, other} {
			ended.Go(func() { c.read(0) })
		}
		synctest.Wait()
		require.True(t, c.Evict(n))
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		assert.Contains(t, decode(t, operation.last.Load().(string))["error"], "or no longer")

		// It reports a panic of the program's code, too.
		sink.Raise("panic")
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		assert.Contains(t, decode(t, other.last.Load().(string))["error"], "in Redact")
		sink.Forget(signals.Query{Pattern: "*"})
		sink.Raise("after")
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, []int32{3, 3}, []int32{raised.events.Load(), other.events.Load()})

		sink.Raise("close") // from inside of a frame
		ended.Wait()
	})
}

// Without clients, a page takes no samples: bubbles end only when no goroutine and no timer is
// left.
func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, func(context.Context, string) error { time.Sleep(100 * time.Millisecond); return nil }, core.Options{Name: "c", MaxConcurrency: 1})
		seen := &counted{Control: c.Control}
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{seen}})
		enqueue(t, c, make([]string, 1000)...)
		time.Sleep(10*time.Second + 50*time.Millisecond)
		assert.Zero(t, seen.asked.Load(), "nobody has looked")

		assert.Empty(t, get(t, p, "overview").at("coordinators", 0, "throughput"))
		time.Sleep(3*time.Second + time.Millisecond)
		o := get(t, p, "overview")
		assert.Equal(t, []any{10.0, 10.0, 10.0}, o.at("coordinators", 0, "throughput"))
		assert.Equal(t, "2000-01-01T00:00:00.000Z", o.at("coordinators", 0, "oldest"))
		time.Sleep(110 * time.Second)
		assert.Len(t, get(t, p, "overview").at("coordinators", 0, "throughput"), 113)
		time.Sleep(20 * time.Second)
		o = get(t, p, "overview")
		assert.Len(t, o.at("coordinators", 0, "throughput"), 120, "two minutes")
		assert.Nil(t, o.at("coordinators", 0, "oldest"), "nothing waits")
		time.Sleep(2*time.Minute + time.Second)
		asked := seen.asked.Load()
		time.Sleep(time.Hour)
		assert.Equal(t, asked, seen.asked.Load(), "it ends two minutes after the last viewer")
		assert.Empty(t, get(t, p, "overview").at("coordinators", 0, "throughput"), "and begins again")
		require.NoError(t, p.Close())
		synctest.Wait()
		assert.Empty(t, get(t, p, "overview").at("coordinators", 0, "throughput"), "closed: no samples")
	})
}

// Fault avoided: a store that hangs must not hold up the page.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &store{name: "q"}
		p := newPage(t, statuspage.Options{Queues: []inspect.StoredQueue{q}})
		assert.EqualValues(t, 2, get(t, p, "overview").at("queues", 0, "nodes"), "the first answer waits for the store")
		q.hangs.Store(true)
		time.Sleep(2 * time.Second)
		start := time.Now()
		o := get(t, p, "overview")
		assert.Equal(t, time.Second, time.Since(start), "it waits a second")
		assert.EqualValues(t, 2, o.at("queues", 0, "nodes"), "and shows what it knew")
		c := newSite(t, p).open(t, 1, "view=overview")
		go c.read(0)
		synctest.Wait()
		assert.EqualValues(t, 1, c.events.Load(), "a stream does not wait")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, "context deadline exceeded", decode(t, c.last.Load().(string)).at("queues", 0, "error"))
		asked := q.asked.Load()
		time.Sleep(10 * time.Second)
		assert.LessOrEqual(t, q.asked.Load(), asked+3, "one question at a time")
		q.hangs.Store(false)
		time.Sleep(7 * time.Second)
		synctest.Wait()
		assert.NotContains(t, c.last.Load(), "deadline")
	})
}

// A frame has the newest 500 new signals; earlier ones are skipped and counted.
func TestSignalsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 50_000})
		raise := func(n int) {
			for range n {
				sink.Raise("a.b")
			}
		}
		raise(30_000)
		sink.Hold("z", "", 0)
		p := newPage(t, statuspage.Options{Sinks: map[string]*signals.Sink{"s": sink}})
		c := newSite(t, p).open(t, 1, "view=signals&limit=10")
		go c.read(0)
		synctest.Wait()
		o := decode(t, c.last.Load().(string))
		assert.EqualValues(t, 0, o["skipped"], "older ones did not come too fast")
		assert.EqualValues(t, 19_999, o.at("families", 0, "count"))
		raise(700)
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		o = decode(t, c.last.Load().(string))
		assert.EqualValues(t, 200, o["skipped"])
		assert.EqualValues(t, 20_499, o.at("families", 0, "count"))
		assert.EqualValues(t, 30_701, o["last"])
		assert.Len(t, o["signals"], 10)
		assert.Equal(t, []any{"z"}, o.each("held", "name"), "held facts are shown, however old they are")
		for i := range 100 {
			sink.Raise(fmt.Sprint("f", i))
		}
		o = get(t, p, "signals?after=30701")
		assert.Len(t, o["families"], 51)
		assert.Equal(t, map[string]any{"family": "", "count": 50.0}, o.at("families", 0))
	})
}

// Over real connections, and over HTTP/2, which has no limit for a peer.
func TestStreamOverNetwork(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			sink := signals.NewSink(signals.SinkOptions{})
			p := newPage(t, statuspage.Options{Sinks: map[string]*signals.Sink{"s": sink}})
			s := httptest.NewUnstartedServer(http.StripPrefix("/debug", p))
			s.EnableHTTP2 = protocol == "HTTP/2.0"
			s.StartTLS()
			var readers sync.WaitGroup
			for i := range 7 {
				answer, err := s.Client().Get(s.URL + "/debug/api/stream?view=signals")
				require.NoError(t, err)
				assert.Equal(t, protocol, answer.Proto)
				if !s.EnableHTTP2 && i >= 4 {
					assert.Equal(t, 503, answer.StatusCode)
					answer.Body.Close()
					continue
				}
				require.Equal(t, 200, answer.StatusCode)
				readers.Go(func() { assert.Contains(t, readAll(t, answer.Body), `"sink":"s"`) })
			}
			// Close ends the streams, so that the server, and this test, can end.
			require.NoError(t, p.Close())
			readers.Wait()
			require.NoError(t, s.Config.Shutdown(t.Context()))
			s.Close()
		})
	}
}
