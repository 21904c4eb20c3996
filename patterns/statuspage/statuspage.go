package statuspage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options say what a [Page] shows, who may see it, and who may change something. The zero
// value is a page that shows nothing, is read-only, and answers the same machine only.
type Options struct {
	// Title is shown at the top. "" is the name of the program.
	Title string

	// Sinks are shown under their names in the map.
	Sinks map[string]*signals.Sink
	// Coordinators are shown under their names. If two names are equal, the second one gets
	// "-2". A coordinator that implements inspect.Actions can be changed, if Allow permits it. If
	// it has the methods Gates and Sink, the page shows its gates: the patterns of DeferOn and
	// CancelOn. All coordinators of core have both methods. New copies all these lists: for a coordinator that comes
	// later, make another page, or give New an Inspector that leads to the present one.
	Coordinators []core.Inspector
	// Queues and Schedules are shown under their names. Equal names get "-2" as well. A queue
	// that implements inspect.Items has a view for each item, and changes of all items that
	// match. Schedules that implement inspect.Firings show what became of their firings.
	Queues    []inspect.StoredQueue
	Schedules []inspect.Schedules

	// View reports whether a request may see the page. [Token] and [Loopback] make such
	// functions. nil means Loopback, and then Allow must be nil, too. Behind a proxy on the same
	// machine, every request comes from a loopback address. A server on a Unix socket needs a
	// View. A stream is one request: the page asks View when the stream starts.
	View func(*http.Request) bool
	// Allow reports whether a request may do an action. nil permits none: the page is
	// read-only. The page asks it after View, which must be set.
	Allow func(*http.Request, Action) bool
	// Who(r) names the person behind a request, in the signals and in the cause of a
	// cancellation. nil means the remote address.
	Who func(*http.Request) string
	// Hosts are names that the Host header may have, besides localhost and IP addresses. They
	// count if the client or the server is on a loopback address. There, the page refuses other
	// names: see the package documentation.
	Hosts []string
	// Show returns the text of an item for the people that View permits. nil shows only the type of an
	// item. The text goes through Redact, and is cut to 1,000 bytes; "" shows nothing. The page calls Show for each
	// operation of a frame that has its item. The item may be in use, so Show must not change or keep it. Show must be
	// safe for concurrent use. If it panics, the page shows the panic as the text.
	Show func(item any) string
	// Redact returns the text to show in place of a key, an error text, the text of an item,
	// the stack of a panic, a signal name, the name of a step, the pattern of a gate, or the text of Operation.WaitsFor. nil shows these texts as they are.
	// After that, the page cuts them, and all other texts, to 1,000 bytes, and stacks to 16,000. Redact is called
	// often, and must be safe for concurrent use. Queries compare with the original texts, but find
	// compares with those that are shown. Names of coordinators, sinks, queues, lanes and classes are not passed to Redact: do
	// not put secrets there.
	Redact func(text string) string

	// MaxClients limits the number of streams. A browser that gets no stream asks every two
	// seconds instead. 0 means 16; negative means no streams.
	MaxClients int

	// MaxTimes limits how many coordinators, lanes and classes count how long operations wait and run. Each keeps up
	// to 80 kB, a coordinator only if it has no lanes and classes. The first of Coordinators count, until MaxTimes is reached;
	// api/time says how many do not. 0 means 250, which is 20 MB; negative means none.
	MaxTimes int

	// Name is in the texts of errors, and in causes of cancellation. "" means "statuspage".
	Name string
	// Sink gets the signals of actions. nil means a new sink: see [Page.Sink].
	Sink *signals.Sink
}

// resolved returns the options with defaults, or an error if they are not valid.
func (o Options) resolved() (Options, error) {
	o.Name = cmp.Or(o.Name, "statuspage")
	if slices.Contains(o.Hosts, "") {
		return o, fmt.Errorf("statuspage: %s: Options.Hosts has an empty name", o.Name)
	}
	o.Title = cut(cmp.Or(o.Title, filepath.Base(os.Args[0])))
	o.Hosts = slices.Clone(o.Hosts)
	o.MaxClients, o.MaxTimes = cmp.Or(o.MaxClients, 16), cmp.Or(o.MaxTimes, 250)
	if o.Sink == nil {
		o.Sink = signals.NewSink(signals.SinkOptions{})
	}
	if o.View == nil {
		if o.View = Loopback; o.Allow != nil {
			return o, fmt.Errorf("statuspage: %s: Options.Allow needs an Options.View, such as Loopback or Token", o.Name)
		}
	}
	if o.Who == nil {
		o.Who = func(r *http.Request) string { return r.RemoteAddr }
	}
	if o.Redact == nil {
		o.Redact = func(text string) string { return text }
	}
	return o, nil
}

// A Page is the handler of the page and of its JSON. It is safe for concurrent use. While
// somebody looks, and for two minutes after that, it has one goroutine. This goroutine takes
// a sample of each coordinator once a second. At other times a Page has no goroutine. Close
// it before the server is shut down.
type Page struct {
	opts         Options
	sinks        []*entry[*signals.Sink]
	coordinators []*coordinator
	queues       []*entry[*cache]
	schedules    []*entry[inspect.Schedules]
	ctx          context.Context // ends with Close
	end          context.CancelFunc
	sampler      sampler
	hub          hub
	told         atomic.Pointer[time.Time] // when SignalRefused was raised last
	stats        Stats                     // hub.mu guards it
}

// An entry is a coordinator, sink, queue or group of schedules, with an id that is unique
// among entries of its type.
type entry[T any] struct {
	id string
	is T
}

type coordinator = entry[core.Inspector]

// New makes a page. It starts no goroutine, but from now on the coordinators count times: see
// [Options.MaxTimes]. Behind a proxy on the same machine, every request comes from a
// loopback address. So Options.Allow without an Options.View is an error.
func New(opts Options) (*Page, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	var errs [4]error
	p := &Page{opts: opts, hub: hub{views: map[query]*view{}, peers: map[string]int{}}}
	taken := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(opts.Sinks)) {
		if p.sinks = with(p.sinks, taken, name, opts.Sinks[name]); opts.Sinks[name] == nil {
			errs[0] = fmt.Errorf("statuspage: %s: Options.Sinks[%q] is nil", opts.Name, name)
		}
	}
	p.coordinators, errs[1] = entries(opts, "Coordinators", opts.Coordinators)
	var queues []*entry[inspect.StoredQueue]
	queues, errs[2] = entries(opts, "Queues", opts.Queues)
	for _, q := range queues {
		p.queues = append(p.queues, &entry[*cache]{q.id, &cache{StoredQueue: q.is, page: p}})
	}
	p.schedules, errs[3] = entries(opts, "Schedules", opts.Schedules)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.times(60)(p.ctx, whole) // from now on, the coordinators count
	return p, nil
}

// Name is [Options.Name].
func (p *Page) Name() string { return p.opts.Name }

// Sink is [Options.Sink], or the sink that was made in its place. It gets the signals of
// actions.
func (p *Page) Sink() *signals.Sink { return p.opts.Sink }

// Close ends the streams, so that http.Server.Shutdown can return. It also ends the
// goroutine of the page. It waits for neither, and returns nil. After Close, requests for
// streams get status 503, and the body of an action may take a second. Other requests are
// answered as before, but without throughput.
func (p *Page) Close() error {
	p.end()
	return nil
}

// Stats count requests for actions by result. They always add up:
//
//	Requests = Acted + Denied + ReadOnly + CrossSite + Unreadable
//
// Requests that View or the rule for hosts refuses are not counted.
type Stats struct {
	Requests   uint64 `json:"requests"`
	Acted      uint64 `json:"acted"`      // allowed actions, done or failed
	Denied     uint64 `json:"denied"`     // by Allow
	ReadOnly   uint64 `json:"readOnly"`   // the page has no Allow
	CrossSite  uint64 `json:"crossSite"`  // a browser sent it for another site
	Unreadable uint64 `json:"unreadable"` // the content type or the body was wrong, or the body did not come in time
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// Stats returns the counters, all read at the same moment.
func (p *Page) Stats() Stats {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return p.stats
}

// count counts a request in one of the fields of stats, and returns its error.
func (p *Page) count(field *uint64, err error) error {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	p.stats.Requests++
	*field++
	return err
}

// entries gives each element an id: its name, or the name with a number if that is taken.
func entries[T interface{ Name() string }](opts Options, option string, from []T) (list []*entry[T], err error) {
	taken := map[string]int{}
	for i, it := range from {
		if any(it) == nil {
			return nil, fmt.Errorf("statuspage: %s: Options.%s[%d] is nil", opts.Name, option, i)
		}
		list = with(list, taken, it.Name(), it)
	}
	return list, nil
}

// with appends an entry of that name. It takes down how many entries have had the name.
func with[T any](list []*entry[T], taken map[string]int, name string, it T) []*entry[T] {
	name = cut(cmp.Or(name, "unnamed"))
	id := name
	for ; taken[id] > 0; id = fmt.Sprintf("%s-%d", name, taken[name]) {
		taken[name]++
	}
	taken[id] = 1
	return append(list, &entry[T]{id, it})
}

func find[T any](list []*entry[T], id string) *entry[T] {
	if i := slices.IndexFunc(list, func(e *entry[T]) bool { return e.id == id }); i >= 0 {
		return list[i]
	}
	return nil
}

// pick is find with an error. With the error comes an empty entry.
func pick[T any](list []*entry[T], what, id string) (*entry[T], error) {
	if e := find(list, id); e != nil {
		return e, nil
	}
	return new(entry[T]), absent("there is no %s %q", what, id)
}
