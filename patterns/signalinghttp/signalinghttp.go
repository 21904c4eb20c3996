package signalinghttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of a request; see the documentation of the package.
const (
	SignalStarting  = "stage.starting"
	SignalRequest   = "stage.request"
	SignalHeaders   = "stage.headers"
	SignalReading   = "stage.reading"
	SignalCompleted = "stage.completed"
	SignalCancelled = "stage.request.cancelled"
	//ephemeral:raises http.error:*
	SignalError = "http.error" // the server answered with an error; followed by a colon and the status code
)

// Failed: the request has failed. The payload is its error.
var Failed = signals.NewKind[error]("stage.request.failed")

// Progress is raised while a body is read, with the percentage after the colon. The payload counts the bytes of the body that
// were read.
var Progress = signals.NewFamily[progress.Report]("progress:*")

// ErrTooLarge is returned by [DownloadLimit] when a body is larger than the limit.
var ErrTooLarge = errors.New("signalinghttp: body is larger than the limit")

var errNoURL = errors.New("signalinghttp: a request needs a URL")

// A StatusError says that a server answered with a status other than 2xx.
type StatusError struct {
	StatusCode int
	Header     http.Header
	request    string // the method and the URL, without query and password
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("signalinghttp: %s: status %d %s", e.request, e.StatusCode, http.StatusText(e.StatusCode))
}

// RetryAfter is the time to wait in the header Retry-After of the response; 0 if there is none.
func (e *StatusError) RetryAfter() time.Duration {
	text := e.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, _ := http.ParseTime(text) // the zero time if the text is no date
	return max(0, time.Until(at))
}

// Download sends the request with client, and copies the body of the response to w. A nil
// client means [http.DefaultClient]. Download returns how many bytes it has written. If the
// status is not 2xx, it returns a [*StatusError]. Errors of the client and of w are returned
// as they are.
//
// Download raises signals on the operation in the request's context, or else on sink. Sink
// may be nil. If the client has a [Transport], the Transport raises no signals for this
// request. Many goroutines may call Download at once.
func Download(client *http.Client, req *http.Request, w io.Writer, sink *signals.Sink) (int64, error) {
	return DownloadLimit(client, req, w, sink, -1)
}

// DownloadLimit is [Download] for a body of at most limit bytes. If the body is larger, it
// returns [ErrTooLarge]. If the response states its length, it returns that error before it
// writes anything. Otherwise it writes at most limit bytes. A negative limit means none.
func DownloadLimit(client *http.Client, req *http.Request, w io.Writer, sink *signals.Sink, limit int64) (n int64, err error) {
	if req == nil || req.URL == nil {
		return 0, errNoURL
	}
	x := begin(req, sink, limit)
	outcome := errors.New("signalinghttp: Download panicked")
	defer func() { x.end(outcome) }()
	n, outcome = x.download(client, req, w)
	return n, outcome
}

type quiet struct{} // marks the context of requests for which a Transport raises no signals

func (x *exchange) download(client *http.Client, req *http.Request, w io.Writer) (int64, error) {
	resp, err := cmp.Or(client, http.DefaultClient).Do(req.WithContext(context.WithValue(x.traced(), quiet{}, true)))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	x.headers(resp)
	if resp.StatusCode/100 != 2 {
		return 0, &StatusError{StatusCode: resp.StatusCode, Header: resp.Header, request: req.Method + " " + x.url}
	}
	if x.limit >= 0 && resp.ContentLength > x.limit {
		return 0, ErrTooLarge
	}
	x.raise(SignalReading)
	return io.Copy(io.MultiWriter(x, w), resp.Body)
}

// A Transport is an [http.RoundTripper] that raises signals for each request. If a body is
// closed before its end, the request counts as cancelled. If the status is 400 or more, the
// Transport raises [SignalError] and [Failed] as soon as it arrives, and returns the
// response as it is.
//
// It is safe for concurrent use and needs no closing.
type Transport struct {
	base http.RoundTripper
	sink *signals.Sink
}

// NewTransport makes a Transport that sends requests with base. A nil base means
// [http.DefaultTransport]. The sink gets the signals of requests that have no operation in
// their context. It may be nil.
func NewTransport(base http.RoundTripper, sink *signals.Sink) *Transport {
	return &Transport{cmp.Or(base, http.DefaultTransport), sink}
}

// RoundTrip sends a request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case req == nil || req.URL == nil:
		if req != nil && req.Body != nil {
			req.Body.Close()
		}
		return nil, errNoURL
	case req.Context().Value(quiet{}) != nil:
		return t.base.RoundTrip(req)
	}
	x := begin(req, t.sink, -1)
	resp, err := t.base.RoundTrip(req.WithContext(x.traced()))
	if err != nil {
		x.end(err)
		return resp, err
	}
	x.headers(resp)
	switch {
	case resp.StatusCode >= 400:
		x.end(&StatusError{StatusCode: resp.StatusCode})
	case resp.StatusCode == http.StatusSwitchingProtocols || resp.Body == http.NoBody:
		x.end(nil)
	default:
		resp.Body = &body{ReadCloser: resp.Body, x: x}
	}
	return resp, nil
}

// CloseIdleConnections does what [http.Client.CloseIdleConnections] does with base.
func (t *Transport) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

// body is the body of a response; its reader may close it before the end.
type body struct {
	io.ReadCloser
	x       *exchange
	reading atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	if !b.reading.Swap(true) {
		b.x.raise(SignalReading)
	}
	n, err := b.ReadCloser.Read(p)
	b.x.Write(p[:n])
	if err == io.EOF {
		b.x.end(nil)
	} else if err != nil {
		b.x.end(err)
	}
	return n, err
}

func (b *body) Close() error {
	if b.x.n.Load() != b.x.total {
		b.x.end(context.Canceled)
	}
	b.x.end(nil) // does nothing if the exchange has ended
	return b.ReadCloser.Close()
}

// exchange is one request. It raises the signals of the request in order.
type exchange struct {
	ctx   context.Context
	url   string
	on    signals.Raiser // the operation of the request, or the sink
	key   string         // key of the signals; "": the key of the operation
	limit int64          // limit of the body; negative: none
	total int64          // length of the body, if it is known

	sent       sync.Once // raises SignalRequest, on a goroutine of net/http; later signals wait for that
	n, percent atomic.Int64
	ended      atomic.Bool
}

func begin(req *http.Request, sink *signals.Sink, limit int64) *exchange {
	url := *req.URL
	url.User, url.RawQuery, url.Fragment = nil, "", ""
	op := core.OperationFrom(req.Context())
	x := &exchange{ctx: req.Context(), url: url.String(), on: op, limit: limit}
	if op == nil && sink != nil {
		x.on, x.key = sink, x.url
	}
	x.raise(SignalStarting)
	x.report(0)
	return x
}

func (x *exchange) raise(name string) { x.on.RaiseKey(name, x.key) }

// traced returns the context for the request. With it, x is notified when the request has
// been sent.
func (x *exchange) traced() context.Context {
	return httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{WroteRequest: func(wrote httptrace.WroteRequestInfo) {
		if wrote.Err == nil {
			x.sent.Do(func() { x.raise(SignalRequest) })
		}
	}})
}

func (x *exchange) headers(resp *http.Response) {
	x.sent.Do(func() { x.raise(SignalRequest) })
	x.raise(SignalHeaders)
	x.total = resp.ContentLength
}

// Write counts the next part of the body.
func (x *exchange) Write(p []byte) (int, error) {
	n := x.n.Add(int64(len(p)))
	if x.limit >= 0 && n > x.limit {
		return 0, ErrTooLarge
	}
	if x.total > 0 && !x.ended.Load() {
		x.progress(min(100, n*100/x.total))
	}
	return len(p), nil
}

func (x *exchange) progress(percent int64) {
	if x.percent.Swap(percent) < percent {
		x.report(percent)
	}
}

func (x *exchange) report(percent int64) {
	Progress.Named("progress:"+strconv.FormatInt(percent, 10)).Raise(x.on, x.key,
		progress.Report{Current: x.n.Load(), Total: max(0, x.total), Done: percent == 100})
}

// end raises the last signal of the exchange, once.
func (x *exchange) end(err error) {
	if x.ended.Swap(true) {
		return
	}
	x.sent.Do(func() {}) // waits, so that SignalRequest does not come after the last signal
	if status, ok := guard.As[*StatusError](err); ok {
		x.raise(SignalError + ":" + strconv.Itoa(status.StatusCode))
	}
	switch {
	case err == nil:
		x.progress(100)
		x.raise(SignalCompleted)
	case guard.Is(err, context.Canceled) || x.ctx.Err() == context.Canceled:
		x.raise(SignalCancelled)
	default:
		Failed.Raise(x.on, x.key, err)
	}
}

// A Handler is an [http.Handler] whose requests are operations of a coordinator. The embedded
// Control controls this coordinator. The key of an operation is method and path, as in
// "GET /orders". The next handler gets the context of the operation. This context ends when
// the client has gone, and when [core.Control.Cancel] is called.
//
// ServeHTTP returns when the operation has ended, never before. A request gets status 503 if
// the queue is full, if a signal matches CancelOn, or if the Handler is closed. If the next
// handler panics, ServeHTTP panics with the same value.
//
// At the end of a program, call [http.Server.Shutdown] first, and then Close.
type Handler struct {
	core.Control
	requests *core.Coordinator[*request]
}

type request struct {
	w       http.ResponseWriter
	r       *http.Request
	started bool
	err     error
	done    chan struct{} // closed when the operation has ended
}

// NewHandler makes a Handler that passes requests on to next. It returns an error if next is
// nil or the options are not valid. Three defaults differ from a coordinator: Name is
// "http", MaxConcurrency is 256, and MaxPerKey has no limit.
func NewHandler(next http.Handler, opts core.Options) (*Handler, error) {
	if next == nil {
		return nil, errors.New("signalinghttp: NewHandler needs a handler")
	}
	opts.Name = cmp.Or(opts.Name, "http")
	opts.MaxConcurrency = cmp.Or(opts.MaxConcurrency, 256)
	opts.MaxPerKey = cmp.Or(opts.MaxPerKey, math.MaxInt32)
	onDone := opts.OnDone
	opts.OnDone = func(s core.Snapshot) {
		req := s.Item.(*request)
		req.err = s.Err
		defer close(req.done)
		if onDone != nil {
			onDone(s)
		}
	}
	key := func(req *request) string { return req.r.Method + " " + req.r.URL.Path }
	c, err := core.NewKeyedCoordinator(key, func(ctx context.Context, req *request) error {
		req.started = true
		next.ServeHTTP(req.w, req.r.WithContext(ctx))
		return context.Cause(ctx)
	}, opts)
	if err != nil {
		return nil, fmt.Errorf("signalinghttp: %w", err)
	}
	return &Handler{c.Control, c}, nil
}

// ServeHTTP serves a request as an operation.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	req := &request{w: w, r: r, done: make(chan struct{})}
	id, err := h.requests.TryEnqueue(ctx, req)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { h.Cancel(id, context.Cause(ctx)) })
		h.requests.Wait(context.WithoutCancel(ctx), id) // suspends an operation that calls ServeHTTP
		<-req.done                                      // waits even if the operation is unknown by now
		req.w, req.r = nil, nil                         // because the window keeps failed items
		stop()
	}
	if err != nil || !req.started {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
	} else if panicked, ok := guard.As[*core.PanicError](req.err); ok {
		panic(cmp.Or(panicked.Value, any(http.ErrAbortHandler)))
	}
}
