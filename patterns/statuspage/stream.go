package statuspage

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

const frameEvery, keepAlive = 250 * time.Millisecond, 15 * time.Second
const writeTime = 5 * time.Second // how long a frame may take to reach the client
const perPeer = 4                 // how many streams one peer may have over HTTP/1; browsers open six connections

// hub knows the views that clients look at.
type hub struct {
	mu      sync.Mutex
	views   map[query]*view
	clients int
	peers   map[string]int
}

// A view is shared by all clients with an equal query. The first client that needs a new
// frame makes it, and the others wait for it. So a view needs no goroutine.
type view struct {
	name    string
	source  source
	every   time.Duration
	clients int // hub.mu guards it

	turn    chan struct{} // full while a goroutine uses the fields below
	body    []byte        // without what comes first: the time, and what the function more returns
	shown   []byte        // with all but the time
	version int           // of the body
	due     time.Time     // when the next frame is to be made
}

// stream sends the frames of a view as server-sent events.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	name := values.Get("view")
	values.Del("view")
	q, err := parse(name, values)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if r.Method == http.MethodHead { // a client cannot see the end of an answer without a body
		return nil
	}
	to := http.NewResponseController(w)
	if err := extend(to); err != nil {
		return failure{code: http.StatusServiceUnavailable, text: "no stream, because a stalled client could not be noticed: " + guard.Text(err)}
	}
	to.SetReadDeadline(time.Time{}) // a stream outlasts http.Server.ReadTimeout
	peer := ""
	if r.ProtoMajor < 2 {
		peer = hostOf(r.RemoteAddr) + r.Header.Get("X-Forwarded-For")
	}
	v, leave, err := p.join(q, peer)
	if err != nil {
		return err
	}
	defer leave()
	p.sampler.look(p, 1)
	defer p.sampler.look(p, -1)
	w.Header().Set("X-Accel-Buffering", "no")
	p.feed(r.Context(), w, to, v)
	return nil
}

// join adds a client to a view, until the client leaves.
func (p *Page) join(q query, peer string) (v *view, leave func(), err error) {
	h := &p.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case p.ctx.Err() != nil:
		return nil, nil, failure{code: http.StatusServiceUnavailable, text: "the page is closed"}
	case h.clients >= p.opts.MaxClients:
		return nil, nil, failure{code: http.StatusServiceUnavailable, text: "there are as many streams as there may be: ask every two seconds"}
	case peer != "" && h.peers[peer] >= perPeer:
		return nil, nil, failure{code: http.StatusServiceUnavailable, text: "there are as many streams as a peer may have over HTTP/1: ask every two seconds"}
	}
	v = h.views[q]
	if v == nil {
		kind := viewKinds[q.view]
		from, err := kind.open(p, q)
		if err != nil {
			return nil, nil, err
		}
		v = &view{name: q.view, source: from, every: kind.every, turn: make(chan struct{}, 1)}
		h.views[q] = v
	}
	v.clients++
	h.clients++
	h.peers[peer]++
	return v, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if v.clients--; v.clients == 0 {
			delete(h.views, q)
		}
		h.clients--
		if h.peers[peer]--; h.peers[peer] == 0 {
			delete(h.peers, peer)
		}
	}, nil
}

// feed sends frames until the client is gone, the client does not read, or the page is
// closed. A slow client misses frames: after each one it gets the newest.
func (p *Page) feed(ctx context.Context, w http.ResponseWriter, to *http.ResponseController, v *view) {
	sent, last := 0, time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.ctx.Done():
			return
		case <-timer.C:
		}
		body, version, due := v.latest(p)
		now := time.Now()
		var err error
		switch {
		case version != sent:
			err = send(w, to, slices.Concat([]byte("data: "), head(now), body[1:], []byte("\n\n")))
		case now.Sub(last) >= keepAlive:
			err = send(w, to, []byte(":\n\n"))
		default:
			now = last
		}
		if err != nil {
			return
		}
		sent, last = version, now
		timer.Reset(time.Until(due))
	}
}

// latest returns the newest body, and when the next one is due. If a frame is due now,
// latest makes it. After a costly frame, the pause is longer.
func (v *view) latest(p *Page) (body []byte, version int, due time.Time) {
	v.turn <- struct{}{}
	defer func() { <-v.turn }()
	now, e := time.Now(), later
	if now.Before(v.due) {
		return v.shown, v.version, v.due
	}
	if v.version == 0 {
		e = first
	}
	v.due = now.Add(v.every) // set even if code of the program panics; net/http then ends that client
	ctx, cancel := context.WithTimeout(p.ctx, ioTimeout)
	defer cancel()
	body, err := p.body(ctx, v.source, e)
	if err != nil {
		body = p.failure(err).body()
	}
	if e == later {
		v.due = now.Add(max(v.every, min(1000*time.Since(now), time.Second)))
	}
	if !bytes.Equal(body, v.body) {
		v.body, v.shown, v.version = body, slices.Concat(body[:1], more(v.name), body[1:]), v.version+1
	}
	return v.shown, v.version, v.due
}

// extend sets the deadline of the next write to a client.
func extend(to *http.ResponseController) error {
	return to.SetWriteDeadline(time.Now().Add(writeTime))
}

func send(w http.ResponseWriter, to *http.ResponseController, event []byte) error {
	if err := extend(to); err != nil {
		return err
	}
	if _, err := w.Write(event); err != nil {
		return err
	}
	return to.Flush()
}
