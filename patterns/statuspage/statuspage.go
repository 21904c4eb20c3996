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
	// addresses that have no header of a proxy: X-Forwarded-For and so on. A server on a
	// Unix socket needs a View. Streams ask it at their start.
	View func(*http.Request) bool
	// Allow reports whether a request may do an action. nil permits none: the page is
	// read-only. It is asked after View.
	Allow func(*http.Request, Action) bool
	// Who(r) is the name of the person behind a request, for signals and for the cause of
	// a cancellation. nil is the remote address.
	Who func(*http.Request) string
	// Hosts are names that requests to a loopback address may use beside localhost and IP
	// addresses. Other names are refused: see the package documentation.
	Hosts []string
	// Redact changes keys, error texts, signal names, and what bodies say they wait for,
	// before they are shown, and cut to 1,000 bytes. nil shows them as they are. It is called often, and must be
	// safe for concurrent use. Queries use the original texts.
	Redact func(text string) string

	// MaxClients is how many streams there may be at once. Beyond that, the page asks every
	// two seconds. 0 means 16; negative means no streams.
	MaxClients int

	// Name is in the texts of errors, and in causes of cancellation. "" means "statuspage".
	Name string
	// Sink is where actions are raised. nil means a sink of the page's own: see [Page.Sink].
	Sink *core.Sink
}

// resolved returns the options with defaults, or says what is wrong with them.
func (o Options) resolved() (Options, error) {
	o.Name = cmp.Or(o.Name, "statuspage")
	if slices.Contains(o.Hosts, "") {
		return o, fmt.Errorf("statuspage: %s: Options.Hosts has an empty name", o.Name)
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
	sinks        []*entry[*core.Sink]
	coordinators []*coordinator
	queues       []*entry[core.StoredQueue]
	caches       []*cache // one for each queue
	schedules    []*entry[core.Schedules]
	ctx          context.Context // ends with Close
	end          context.CancelFunc
	sampler      sampler
	hub          hub
}

// An entry is something that is shown, under a name that no other of its sort has.
type entry[T any] struct {
	id string
	is T
}

type coordinator = entry[core.Inspector]

// New makes a page. It starts nothing.
func New(opts Options) (*Page, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	var errs [4]error
	p := &Page{opts: opts, hub: hub{views: map[query]*view{}, peers: map[string]int{}}}
	for _, name := range slices.Sorted(maps.Keys(opts.Sinks)) {
		if p.sinks = append(p.sinks, &entry[*core.Sink]{name, opts.Sinks[name]}); opts.Sinks[name] == nil {
			errs[0] = fmt.Errorf("statuspage: %s: Options.Sinks[%q] is nil", opts.Name, name)
		}
	}
	p.coordinators, errs[1] = entries(opts, "Coordinators", opts.Coordinators)
	p.queues, errs[2] = entries(opts, "Queues", opts.Queues)
	p.schedules, errs[3] = entries(opts, "Schedules", opts.Schedules)
	for _, q := range p.queues {
		p.caches = append(p.caches, &cache{queue: q.is})
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	p.ctx, p.end = context.WithCancel(context.Background())
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

// entries gives each an id: its name, or another if that is taken.
func entries[T interface{ Name() string }](opts Options, option string, from []T) (list []*entry[T], err error) {
	for i, it := range from {
		if any(it) == nil {
			return nil, fmt.Errorf("statuspage: %s: Options.%s[%d] is nil", opts.Name, option, i)
		}
		name := cmp.Or(it.Name(), "unnamed")
		id := name
		for n := 2; find(list, id) != nil; n++ {
			id = fmt.Sprintf("%s-%d", name, n)
		}
		list = append(list, &entry[T]{id, it})
	}
	return list, nil
}

func find[T any](list []*entry[T], id string) *entry[T] {
	for _, e := range list {
		if e.id == id {
			return e
		}
	}
	return nil
}

// pick is find with an error.
func pick[T any](list []*entry[T], what, id string) (*entry[T], error) {
	if e := find(list, id); e != nil {
		return e, nil
	}
	return nil, failure{http.StatusNotFound, fmt.Sprintf("there is no %s %q", what, id)}
}
