package statuspage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options say what a [Page] shows, to whom, and what they may do. The zero value is a page
// that shows nothing, to programs and people on the same machine.
type Options struct {
	// Title is shown at the top. "" is the name of the program.
	Title string

	// Sinks are shown under their names in the map.
	Sinks map[string]*core.Sink
	// Coordinators are shown under their names; of two with an equal name, the second gets
	// "-2". One that is a core.Controller, as all of core are, can be steered if Allow
	// permits it. One that has Gates and Sink, as all of core have, shows its gates.
	Coordinators []core.Inspector
	// Queues and Schedules are shown under their names, made different in the same way.
	Queues    []core.StoredQueue
	Schedules []core.Schedules

	// View reports whether a request may see the page. nil permits requests from loopback
	// addresses that have no header of a proxy: X-Forwarded-For and so on.
	View func(*http.Request) bool
	// Allow reports whether a request may do an action. nil permits none: the page is
	// read-only. It is asked after View.
	Allow func(*http.Request, Action) bool
	// Who names the person behind a request, for signals and for the cause of a
	// cancellation. nil is the remote address.
	Who func(*http.Request) string
	// Hosts are names that requests to a loopback address may use beside localhost and IP
	// addresses. Other names are refused: see the package documentation.
	Hosts []string
	// Redact changes keys, error texts, signal names, and what bodies say they wait for,
	// before they are shown. nil shows them as they are. It is called often, and must be
	// safe for concurrent use. Queries use the original texts.
	Redact func(text string) string

	// MaxClients is how many streams there may be at once. Beyond that, the page asks every
	// two seconds. 0 means 16; negative means no streams.
	MaxClients int

	// Name is the source in the name of errors and signals. "" means "statuspage".
	Name string
	// Sink is where actions are raised. nil means a sink of the page's own: see [Page.Sink].
	Sink *core.Sink
}

// resolved returns the options with defaults, or says what is wrong with them.
func (o Options) resolved() (Options, error) {
	o.Name = cmp.Or(o.Name, "statuspage")
	var errs []error
	for i, c := range o.Coordinators {
		if c == nil {
			errs = append(errs, fmt.Errorf("statuspage: %s: Options.Coordinators[%d] is nil", o.Name, i))
		}
	}
	for i, q := range o.Queues {
		if q == nil {
			errs = append(errs, fmt.Errorf("statuspage: %s: Options.Queues[%d] is nil", o.Name, i))
		}
	}
	for i, s := range o.Schedules {
		if s == nil {
			errs = append(errs, fmt.Errorf("statuspage: %s: Options.Schedules[%d] is nil", o.Name, i))
		}
	}
	for name, s := range o.Sinks {
		if s == nil {
			errs = append(errs, fmt.Errorf("statuspage: %s: Options.Sinks[%q] is nil", o.Name, name))
		}
	}
	if slices.Contains(o.Hosts, "") {
		errs = append(errs, fmt.Errorf("statuspage: %s: Options.Hosts has an empty name", o.Name))
	}
	if err := errors.Join(errs...); err != nil {
		return o, err
	}
	o.Title = cmp.Or(o.Title, filepath.Base(os.Args[0]))
	o.Hosts = slices.Clone(o.Hosts)
	o.MaxClients = cmp.Or(o.MaxClients, 16)
	if o.Sink == nil {
		o.Sink = core.NewSink(core.SinkOptions{})
	}
	if o.View == nil {
		o.View = isLocal
	}
	if o.Who == nil {
		o.Who = func(r *http.Request) string { return r.RemoteAddr }
	}
	if o.Redact == nil {
		o.Redact = func(text string) string { return text }
	}
	return o, nil
}

// A Page is the handler of the page and of the JSON under it. It is safe for concurrent
// use. While somebody looks, and two minutes longer, it has one goroutine, which takes a
// sample of each coordinator once a second; at other times it has none and costs nothing.
// Close it before the server is shut down.
type Page struct {
	opts         Options
	sinks        []*sink
	coordinators []*coordinator
	queues       []*queue
	schedules    []*schedules
	ctx          context.Context // ends with Close
	end          context.CancelFunc
	sampler      sampler
	hub          hub
}

// What is shown, under names that are all different.
type (
	sink struct {
		*core.Sink
		id string
	}
	coordinator struct {
		core.Inspector
		id   string
		line line
	}
	schedules struct {
		core.Schedules
		id string
	}
)

func (s *sink) name() string        { return s.id }
func (c *coordinator) name() string { return c.id }
func (s *schedules) name() string   { return s.id }

// New makes a page. It starts nothing.
func New(opts Options) (*Page, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	p := &Page{opts: opts, hub: newHub()}
	p.ctx, p.end = context.WithCancel(context.Background())
	for _, name := range slices.Sorted(maps.Keys(opts.Sinks)) {
		p.sinks = append(p.sinks, &sink{opts.Sinks[name], newID(p.sinks, name)})
	}
	for _, c := range opts.Coordinators {
		p.coordinators = append(p.coordinators, &coordinator{Inspector: c, id: newID(p.coordinators, c.Name())})
	}
	for _, q := range opts.Queues {
		p.queues = append(p.queues, &queue{StoredQueue: q, id: newID(p.queues, q.Name())})
	}
	for _, s := range opts.Schedules {
		p.schedules = append(p.schedules, &schedules{s, newID(p.schedules, s.Name())})
	}
	return p, nil
}

// Name is [Options.Name].
func (p *Page) Name() string { return p.opts.Name }

// Sink is [Options.Sink], or the page's own: actions are raised there.
func (p *Page) Sink() *core.Sink { return p.opts.Sink }

// Close ends the streams, so that http.Server.Shutdown can return, and the sampling. It
// does not wait for them. Later requests for streams are refused; the others are answered
// as before, without samples. It returns nil.
func (p *Page) Close() error {
	p.end()
	return nil
}

// newID is the name, or another if one of the list has it already.
func newID[T interface{ name() string }](list []T, name string) string {
	name = cmp.Or(name, "unnamed")
	id := name
	for n := 2; slices.ContainsFunc(list, func(t T) bool { return t.name() == id }); n++ {
		id = fmt.Sprintf("%s-%d", name, n)
	}
	return id
}

// pick returns the one with that id; without an id, the only one.
func pick[T interface{ name() string }](list []T, what, id string) (T, error) {
	if id == "" && len(list) == 1 {
		return list[0], nil
	}
	for _, t := range list {
		if t.name() == id {
			return t, nil
		}
	}
	var none T
	return none, failure{http.StatusNotFound, fmt.Sprintf("there is no %s %q", what, id)}
}
