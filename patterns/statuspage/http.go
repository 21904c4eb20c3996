package statuspage

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

//go:embed page
var files embed.FS

// contentTypes are the types of the files that a browser gets.
var contentTypes = map[string]string{"page.html": "text/html; charset=utf-8", "page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}

// script is page.js: all scripts of the page, in the order of their names.
var script = func() (all []byte) {
	names, _ := fs.Glob(files, "page/*.js")
	for _, name := range names {
		part, _ := fs.ReadFile(files, name)
		all = append(append(all, part...), '\n')
	}
	return all
}()

// A failure is an error with its HTTP status.
type failure struct {
	code   int
	text   string
	header http.Header
}

func (f failure) Error() string { return f.text }

// ServeHTTP serves the page at the root of its path, and the JSON under api/. To serve it
// under another path, put http.StripPrefix in front: all links in the page are relative.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range policy {
		w.Header().Set(name, value)
	}
	if r.ContentLength != 0 { // a body that never comes must not hold up the request
		to, ended := http.NewResponseController(w), make(chan bool)
		to.SetReadDeadline(time.Now().Add(ioTimeout))
		stop := context.AfterFunc(p.ctx, func() { to.SetReadDeadline(time.Now().Add(time.Second)); close(ended) })
		defer func() { _ = stop() || <-ended }()
	}
	if err := p.serve(w, r); err != nil {
		if r.ContentLength != 0 && r.ProtoMajor < 2 {
			w.Header().Set("Connection", "close") // otherwise net/http first reads the rest of the body
		}
		f := p.failure(err)
		if maps.Copy(w.Header(), f.header); f.code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "2")
		}
		p.answer(w, f.code, f.body())
	}
}

// isReading reports whether a request only reads.
func isReading(r *http.Request) bool { return r.Method == "GET" || r.Method == "HEAD" }

func (p *Page) serve(w http.ResponseWriter, r *http.Request) error {
	if err := p.admit(r); err != nil {
		return err
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	methods, ok := "GET, HEAD", isReading(r) && r.ContentLength == 0
	if name == "api/act" {
		methods, ok = http.MethodPost, r.Method == http.MethodPost
	}
	if !ok {
		return failure{http.StatusMethodNotAllowed, "this path takes " + methods, http.Header{"Allow": {methods}}}
	}
	switch what, isAPI := strings.CutPrefix(name, "api/"); {
	case isAPI && what == "act":
		return p.act(w, r)
	case isAPI && what == "stream":
		return p.stream(w, r)
	case isAPI:
		return p.get(w, r, what)
	}
	name = cmp.Or(name, "page.html")
	kind, ok := contentTypes[name]
	if !ok {
		return absent("there is no such path")
	}
	w.Header().Set("Content-Type", kind)
	body := script
	if name != "page.js" {
		body, _ = files.ReadFile("page/" + name)
	}
	w.Write(compressed(w, r, body))
	return nil
}

// get answers a query once.
func (p *Page) get(w http.ResponseWriter, r *http.Request, name string) error {
	q, err := parse(name, r.URL.Query())
	if err != nil {
		return err
	}
	view, err := viewKinds[name].open(p, q)
	if err != nil {
		return err
	}
	p.sampler.look(p, 0)
	ctx, cancel := context.WithTimeout(r.Context(), ioTimeout)
	defer cancel()
	body, err := p.body(ctx, view, whole)
	if err != nil {
		return err
	}
	p.answer(w, http.StatusOK, compressed(w, r, slices.Concat(head(time.Now()), more(name), body[1:])))
	return nil
}

// body returns the present state of a source as JSON.
func (p *Page) body(ctx context.Context, from source, e effort) (body []byte, err error) {
	return body, p.tried(func() error {
		shown, err := from(ctx, e)
		if err == nil {
			body, err = json.Marshal(shown)
		}
		return err
	})
}

// head is the start of a JSON object with its first field, the time of the server. The
// browser needs it for ages, because its own clock may differ. The rest of a body has no
// such time, so bodies can be compared.
func head(now time.Time) []byte { return []byte(`{"time":"` + stamp(now) + `",`) }

func (p *Page) answer(w http.ResponseWriter, code int, body []byte) {
	extend(http.NewResponseController(w)) // if possible: a client that does not read must not stay
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	w.Write(body)
}

// failure returns the failure in an error. Any other error is an error of the program.
func (p *Page) failure(err error) failure {
	if f, ok := guard.As[failure](err); ok {
		return f
	}
	return failure{code: http.StatusInternalServerError, text: p.said(err.Error)}
}

func (f failure) body() []byte {
	body, _ := json.Marshal(map[string]string{"error": cut(f.text)})
	return body
}

// minZipped is how long a body must be to be compressed. Below it, most bodies fit into one packet.
const minZipped = 1024

// compressed returns a body in the encoding that the client accepts, and sets the headers that say so.
func compressed(w http.ResponseWriter, r *http.Request, body []byte) []byte {
	w.Header().Set("Vary", "Accept-Encoding")
	if len(body) < minZipped || !acceptsGzip(r.Header.Get("Accept-Encoding")) {
		return body
	}
	var small bytes.Buffer
	z := gzip.NewWriter(&small)
	z.Write(body) // a buffer returns no error
	z.Close()
	w.Header().Set("Content-Encoding", "gzip")
	return small.Bytes()
}

// acceptsGzip reports whether gzip is in a list such as "br;q=1.0, gzip;q=0.8". A quality of 0 forbids it.
func acceptsGzip(list string) bool {
	for coding := range strings.SplitSeq(list, ",") {
		name, quality, found := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";q=")
		if strings.EqualFold(name, "gzip") {
			return !found || strings.ContainsAny(quality, "123456789")
		}
	}
	return false
}
