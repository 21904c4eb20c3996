package signalinghttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/signalinghttp"
)

const (
	begun     = "stage.starting progress:0 stage.request stage.headers stage.reading "
	completed = "progress:100 stage.completed"
)

// serve returns a request for a server with this handler.
func serve(t *testing.T, h http.HandlerFunc) *http.Request {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/file?token=secret", nil)
	require.NoError(t, err)
	return req
}

func names(from signals.Sensor) string {
	var all []string
	for s := range from.Sense(signals.Query{Pattern: "stage.*, progress:*, http.*"}) {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}

func newSink() *signals.Sink { return signals.NewSink(signals.SinkOptions{}) }

// sized answers with a body whose length is known.
func sized(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(n))
		w.Write(make([]byte, n))
	}
}

func unsized(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		io.WriteString(w, text)
	}
}

func TestDownloadStagesAndProgress(t *testing.T) {
	sink, req := newSink(), serve(t, sized(1<<20))
	n, err := signalinghttp.Download(http.DefaultClient, req, io.Discard, sink)
	require.NoError(t, err)
	assert.EqualValues(t, 1<<20, n)
	all := names(sink)
	assert.True(t, strings.HasPrefix(all, begun), all)
	assert.True(t, strings.HasSuffix(all, " "+completed), all)
	last, number := -1, 0
	for s := range sink.Sense(signals.Query{Pattern: "progress:*"}) {
		arg, _ := s.Arg()
		percent, err := strconv.Atoi(arg)
		require.NoError(t, err)
		assert.Greater(t, percent, last)
		last, number = percent, number+1
	}
	assert.LessOrEqual(t, number, 101)
	for s := range sink.Sense(signals.Query{Pattern: "stage.starting"}) {
		assert.Equal(t, strings.TrimSuffix(req.URL.String(), "?token=secret"), s.Key)
	}
}

func TestDownloadWithoutLength(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{"not known": unsized("hello"), "empty": sized(0)} {
		t.Run(name, func(t *testing.T) {
			sink := newSink()
			_, err := signalinghttp.Download(http.DefaultClient, serve(t, h), io.Discard, sink)
			assert.NoError(t, err)
			assert.Equal(t, begun+completed, names(sink))
		})
	}
}

func TestRequestIsSaidWhenItWasSent(t *testing.T) {
	sink := newSink()
	req := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		sink.WaitFor(r.Context(), "stage.request")
		assert.False(t, sink.Has("stage.headers"))
	})
	_, err := signalinghttp.Download(nil, req, io.Discard, sink)
	assert.NoError(t, err)
}

func TestRequestWithoutURL(t *testing.T) {
	sink := newSink()
	for _, req := range []*http.Request{nil, {}} {
		_, err := signalinghttp.Download(nil, req, io.Discard, sink)
		assert.EqualError(t, err, "signalinghttp: a request needs a URL")
		_, err = signalinghttp.NewTransport(nil, sink).RoundTrip(req)
		assert.EqualError(t, err, "signalinghttp: a request needs a URL")
	}
	body := &closes{}
	signalinghttp.NewTransport(nil, sink).RoundTrip(&http.Request{Body: body})
	assert.True(t, body.closed, "as http.RoundTripper says")
	assert.Zero(t, sink.Count("*"))
}

type closes struct {
	strings.Reader
	closed bool
}

func (c *closes) Close() error {
	c.closed = true
	return nil
}

// CloseIdleConnections of a client reaches the base Transport through the Transport of this
// package.
func TestCloseIdleConnections(t *testing.T) {
	base := &http.Transport{}
	client := &http.Client{Transport: signalinghttp.NewTransport(base, nil)}
	reused := func(req *http.Request) (is bool) {
		ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { is = got.Reused }})
		_, err := signalinghttp.Download(client, req.WithContext(ctx), io.Discard, nil)
		assert.NoError(t, err)
		return is
	}
	req := serve(t, sized(1))
	assert.Equal(t, []bool{false, true}, []bool{reused(req), reused(req)})
	client.CloseIdleConnections()
	assert.False(t, reused(req))
	(&http.Client{Transport: signalinghttp.NewTransport(http.NewFileTransport(http.Dir(".")), nil)}).CloseIdleConnections()
}

func TestStatusIsAnError(t *testing.T) {
	sink := newSink()
	req := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	_, err := signalinghttp.Download(http.DefaultClient, req, io.Discard, sink)
	var status *signalinghttp.StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, 503, status.StatusCode)
	assert.Equal(t, 7*time.Second, status.RetryAfter())
	assert.Regexp(t, `^signalinghttp: GET http://.*/file: status 503 Service Unavailable$`, err.Error())
	assert.Equal(t, "stage.starting progress:0 stage.request stage.headers http.error:503 stage.failed", names(sink))

	status.Header.Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	assert.Greater(t, status.RetryAfter(), 59*time.Minute)
	status.Header.Set("Retry-After", "soon")
	assert.Zero(t, status.RetryAfter())
}

func TestFailuresAreSaid(t *testing.T) {
	fail := func(req *http.Request, w io.Writer) (string, error) {
		sink := newSink()
		_, err := signalinghttp.Download(http.DefaultClient, req, w, sink)
		for _, said := range signalinghttp.Failed.Sense(sink, signals.Query{}) {
			assert.Equal(t, err, said)
		}
		return names(sink), err
	}
	gone := serve(t, sized(1))
	gone.URL.Host = "127.0.0.1:1"
	all, err := fail(gone, io.Discard)
	assert.Error(t, err)
	assert.Equal(t, "stage.starting progress:0 stage.failed", all, "nothing was sent")

	all, err = fail(serve(t, sized(5)), failing{})
	assert.ErrorIs(t, err, errFull)
	assert.True(t, strings.HasSuffix(all, " stage.failed"), all)

	ctx, cancel := context.WithCancelCause(t.Context())
	req := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		cancel(errors.New("no longer needed"))
		<-r.Context().Done()
	})
	all, err = fail(req.WithContext(ctx), io.Discard)
	assert.Error(t, err)
	assert.True(t, strings.HasSuffix(all, " stage.cancelled"), all)

	sink := newSink()
	assert.Panics(t, func() {
		signalinghttp.Download(http.DefaultClient, serve(t, sized(9)), panicking{}, sink)
	})
	assert.True(t, strings.HasSuffix(names(sink), " stage.failed"), names(sink))
}

var errFull = errors.New("disk is full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("lost") }

func TestDownloadLimit(t *testing.T) {
	for _, h := range []http.HandlerFunc{sized(10), unsized("0123456789")} {
		var w strings.Builder
		n, err := signalinghttp.DownloadLimit(http.DefaultClient, serve(t, h), &w, nil, 10)
		assert.NoError(t, err)
		assert.EqualValues(t, 10, n)
		w.Reset()
		n, err = signalinghttp.DownloadLimit(http.DefaultClient, serve(t, h), &w, nil, 9)
		assert.ErrorIs(t, err, signalinghttp.ErrTooLarge)
		assert.EqualValues(t, w.Len(), n)
		assert.LessOrEqual(t, w.Len(), 9)
	}
}

func TestTransport(t *testing.T) {
	const headers = "stage.starting progress:0 stage.request stage.headers"
	readAll := func(b io.Reader) { io.Copy(io.Discard, b) }
	for _, test := range []struct {
		name, method string
		h            http.HandlerFunc
		read         func(io.Reader)
		want         string
	}{
		{"read", "GET", unsized("hello"), readAll, begun + completed},
		{"read without EOF", "GET", sized(2), func(b io.Reader) { io.ReadFull(b, make([]byte, 2)) }, begun + completed},
		{"closed early", "GET", sized(200), func(b io.Reader) { io.ReadFull(iotest.OneByteReader(b), make([]byte, 2)) }, begun + "progress:1 stage.cancelled"},
		{"no body", "HEAD", sized(200), readAll, headers + " " + completed},
		{"status", "GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, readAll, headers + " http.error:404 stage.failed"},
		{"aborted", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, readAll, begun + "stage.failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sink, req := newSink(), serve(t, test.h)
			req.Method = test.method
			client := &http.Client{Transport: signalinghttp.NewTransport(nil, sink)}
			resp, err := client.Do(req)
			require.NoError(t, err)
			test.read(resp.Body)
			resp.Body.Close()
			assert.Equal(t, test.want, names(sink))
		})
	}
	sink := newSink()
	client := &http.Client{Transport: signalinghttp.NewTransport(nil, sink)}
	_, err := signalinghttp.Download(client, serve(t, unsized("hello")), io.Discard, sink)
	require.NoError(t, err)
	assert.Equal(t, begun+completed, names(sink), "once, not by both")
}

func TestSignalsAreTheOperations(t *testing.T) {
	sink, req := newSink(), serve(t, unsized("hello"))
	c, err := core.NewCoordinator(func(ctx context.Context, req *http.Request) error {
		_, err := signalinghttp.Download(http.DefaultClient, req.WithContext(ctx), io.Discard, sink)
		return err
	}, core.Options{})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Do(t.Context(), req))
	assert.Equal(t, begun+completed, names(c))
	assert.Empty(t, names(sink))
}

// newServer serves with a Handler around next.
func newServer(t *testing.T, opts core.Options, next http.HandlerFunc) (*signalinghttp.Handler, string) {
	h, err := signalinghttp.NewHandler(next, opts)
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.Close()
		h.Close()
	})
	return h, server.URL
}

func status(t *testing.T, url string) int {
	resp, err := http.Get(url)
	require.NoError(t, err)
	resp.Body.Close()
	return resp.StatusCode
}

func TestHandlerRequestIsSeenAndCancelled(t *testing.T) {
	started := make(chan core.OperationID)
	h, url := newServer(t, core.Options{}, func(w http.ResponseWriter, r *http.Request) {
		started <- core.OperationFrom(r.Context()).ID()
		<-r.Context().Done()
		io.WriteString(w, context.Cause(r.Context()).Error())
	})
	go func() {
		id := <-started
		op, _ := h.Lookup(id)
		h.Cancel(id, errors.New("cancelled: "+op.Key))
	}()
	resp, err := http.Get(url + "/orders?page=2")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	assert.Equal(t, "cancelled: GET /orders", string(text))
	assert.EqualValues(t, 1, h.Stats().Cancelled)
}

func TestHandlerReturnsAfterItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		h, err := signalinghttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			time.Sleep(time.Minute)
			ended = true
		}), core.Options{MaxTracked: -1})
		require.NoError(t, err)
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		assert.True(t, ended)
	})
}

func TestHandlerRefuses(t *testing.T) {
	sink := newSink()
	h, url := newServer(t, core.Options{Sink: sink, CancelOn: "overloaded"}, func(http.ResponseWriter, *http.Request) {})
	assert.Equal(t, 200, status(t, url))
	sink.Raise("overloaded")
	assert.Equal(t, 503, status(t, url))
	sink.Retract("overloaded")
	h.Close()
	assert.Equal(t, 503, status(t, url))
}

func TestHandlerPanicsAndNestedRequests(t *testing.T) {
	var h *signalinghttp.Handler
	h, err := signalinghttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/outer" {
			h.ServeHTTP(w, httptest.NewRequestWithContext(r.Context(), "GET", "/inner", nil))
			return
		}
		panic(http.ErrAbortHandler)
	}), core.Options{MaxConcurrency: 1})
	require.NoError(t, err)
	defer h.Close()
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/outer", nil))
	})
	assert.EqualValues(t, 2, h.Stats().Failed)
	_, err = signalinghttp.NewHandler(nil, core.Options{})
	assert.EqualError(t, err, "signalinghttp: NewHandler needs a handler")
}
