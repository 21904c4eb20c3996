package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// pairsWorld runs a program in a bubble.
type pairsWorld struct {
	*pairsProgram
	core.Control
	plain    *core.Coordinator[*pairsCall] // or
	results  *core.ResultCoordinator[*pairsCall, int]
	start    time.Time
	traces   bool
	all      sync.WaitGroup // calls from outside
	perKey   int
	suspends int // MaxSuspended

	mu       sync.Mutex
	left     int                 // calls that may still be made
	made     int                 // calls
	inside   int                 // callbacks that are under way
	open     map[*pairsCall]bool // calls from outside that have not returned
	rooms    []*pairsRoom        // in the order in which they came
	ids      []core.OperationID
	unpins   []func()
	releases []func()
	counts   map[string]int // of bodies that run without being suspended: in all, by lane, class and key
	limit    int
	surplus  int // how many more may run because the limit was higher
	told     map[core.OperationID]int
	returned map[core.OperationID]bool // of OnDone
	final    map[core.OperationID]core.Snapshot
}

// pairsRoom is an item that may have to wait for room. Ordered: it came while nothing moved.
type pairsRoom struct {
	*pairsCall
	ordered, waits bool
	unknown        bool // whether it waits for room: it is in Do, or in a callback
	refused        int  // calls that had been made when it got ErrFull, if the next look can judge that
	id             core.OperationID
}

// pairsOp is the state of an operation in its body.
type pairsOp struct {
	*core.Operation
	item   *pairsCall
	depth  int // of waits
	report bool
}

type pairsOpKey struct{}

const onPurpose = "on purpose"

func newPairsWorld(p *pairsProgram, traces bool) *pairsWorld {
	w := &pairsWorld{
		pairsProgram: p, traces: traces, start: time.Now(), left: 200, limit: p.opts.MaxConcurrency, perKey: max(1, p.opts.MaxPerKey),
		open: make(map[*pairsCall]bool), counts: make(map[string]int), told: make(map[core.OperationID]int),
		returned: make(map[core.OperationID]bool), final: make(map[core.OperationID]core.Snapshot),
	}
	if w.suspends = max(0, p.opts.MaxSuspended); p.opts.MaxSuspended == 0 {
		w.suspends = 1024
	}
	opts := p.opts
	if opts.OnDone != nil {
		opts.OnDone = w.onDone
	}
	body := func(ctx context.Context, item *pairsCall) (int, error) { return 1, w.body(ctx, item) }
	key := func(item *pairsCall) string { return item.key }
	switch {
	case p.futures && p.keyed:
		w.results = core.Must(core.NewKeyedResultCoordinator(key, body, opts))
	case p.futures:
		w.results = core.Must(core.NewResultCoordinator(body, opts))
	case p.keyed:
		w.plain = core.Must(core.NewKeyedCoordinator(key, w.body, opts))
	default:
		w.plain = core.Must(core.NewCoordinator(w.body, opts))
	}
	if p.futures {
		w.Control = w.results.Control
	} else {
		w.Control = w.plain.Control
	}
	w.OnFinalized(w.onFinalized)
	return w
}

// fatalf ends the process, as a bubble with a hanging goroutine could not be left otherwise.
func (w *pairsWorld) fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "after %v: %s\n", time.Since(w.start), fmt.Sprintf(format, args...))
	os.Exit(2)
}

func (w *pairsWorld) tracef(format string, args ...any) {
	if w.traces {
		fmt.Fprintf(os.Stderr, "%8v  %s\n", time.Since(w.start), fmt.Sprintf(format, args...))
	}
}

// run makes the calls, and lets everything end.
func (w *pairsWorld) run() {
	settled := true
	for _, c := range w.calls {
		ordered := settled
		if c.kind == "Sleep" {
			time.Sleep(c.span)
		} else {
			w.mu.Lock()
			w.open[c] = true
			w.mu.Unlock()
			w.all.Go(func() {
				defer func() {
					w.locked(func() { delete(w.open, c) })
					if r := recover(); r != nil && r != onPurpose {
						panic(r)
					}
				}()
				w.do(context.Background(), c, ordered)
			})
		}
		if settled = c.settles; settled {
			w.settle()
		}
	}
	w.settle()
	w.locked(func() { w.left = 0 })
	w.Resume()
	w.locked(func() {
		for _, undo := range slices.Concat(w.unpins, w.releases) {
			w.all.Go(undo)
		}
	})
	w.opts.Sink.Retract("*")
	w.settle()
	time.Sleep(time.Hour) // until the ends of all deferrals, and of the window
	w.settle()
	w.checkEnded()
	w.Close()
	w.all.Wait()
	w.checkClosed()
}

func (w *pairsWorld) locked(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

// enter counts a running body, and checks that it may run.
func (w *pairsWorld) enter(o *pairsOp) {
	lane, class := w.places(o.item)
	w.locked(func() {
		w.count("all", 1, max(w.limit, w.surplus))
		w.count("lane "+lane.Name, 1, lane.Limit)
		w.count("class "+class.Name, 1, class.Limit)
	})
}

func (w *pairsWorld) leave(o *pairsOp) {
	lane, class := w.places(o.item)
	w.locked(func() {
		for _, what := range []string{"all", "lane " + lane.Name, "class " + class.Name} {
			w.count(what, -1, 0)
		}
	})
}

// count adds n; limit 0 means no limit. mu is held.
func (w *pairsWorld) count(what string, more, limit int) {
	if w.counts[what] += more; limit > 0 && w.counts[what] > limit {
		w.fatalf("%d of %s run, want at most %d", w.counts[what], what, limit)
	}
}

// places are the lane and the class of an item.
func (w *pairsWorld) places(item *pairsCall) (lane core.Lane, class core.Class) {
	if len(w.opts.Lanes) > 0 {
		lane = w.opts.Lanes[item.lane]
	}
	if item.class < len(w.opts.Classes) {
		class = w.opts.Classes[item.class]
	}
	return lane, class
}

// waiting calls a function that may suspend the operation of ctx.
func (w *pairsWorld) waiting(ctx context.Context, wait func()) {
	if o, _ := ctx.Value(pairsOpKey{}).(*pairsOp); o != nil {
		if o.depth++; o.depth == 1 {
			w.leave(o)
		}
		defer func() {
			if o.depth--; o.depth == 0 {
				w.enter(o)
			}
		}()
	}
	wait()
}

func (w *pairsWorld) body(ctx context.Context, item *pairsCall) error {
	o := &pairsOp{Operation: core.OperationFrom(ctx), item: item}
	w.tracef("operation %d starts, item of %d", o.ID(), item.number)
	w.locked(func() { w.ids = append(w.ids, o.ID()) })
	w.enter(o)
	defer w.leave(o)
	if w.keyed && item.key != "" {
		key := "key " + item.key
		w.locked(func() { w.count(key, 1, w.perKey) })
		defer w.locked(func() { w.count(key, -1, 0) })
	}
	for _, c := range item.body {
		w.do(context.WithValue(ctx, pairsOpKey{}, o), c, false)
	}
	defer w.tracef("operation %d ends, %v", o.ID(), context.Cause(ctx))
	if o.report {
		return errors.New(onPurpose)
	}
	return context.Cause(ctx)
}

func (w *pairsWorld) onDone(s core.Snapshot) {
	w.tracef("OnDone(%d, %v, %v)", s.ID, s.Status, s.Err)
	w.locked(func() {
		if w.told[s.ID]++; w.told[s.ID] > 1 || s.Status&core.StatusFinished == 0 {
			w.fatalf("OnDone is called for operation %d while it is %v, %d times", s.ID, s.Status, w.told[s.ID])
		}
	})
	defer w.locked(func() { w.returned[s.ID] = true })
	w.callback(w.done, s)
}

func (w *pairsWorld) onFinalized(s core.Snapshot) {
	w.tracef("OnFinalized(%d, %v, %v)", s.ID, s.Status, s.Err)
	w.locked(func() {
		if before, twice := w.final[s.ID]; twice || s.Status&core.StatusFinished == 0 {
			w.fatalf("OnFinalized is called for operation %d while it is %v, before that while %v", s.ID, s.Status, before.Status)
		}
		w.final[s.ID] = s
	})
	w.callback(w.pairsProgram.final, s)
}

// callback makes the calls of a callback, on its own operation if their target is 0.
func (w *pairsWorld) callback(calls []*pairsCall, s core.Snapshot) {
	w.locked(func() { w.inside++ })
	defer w.locked(func() { w.inside-- })
	for _, c := range calls {
		own := *c
		if c.target == 0 {
			own.target = -int(s.ID)
		}
		w.do(context.Background(), &own, false)
	}
}

// do makes a call. Ordered says that the call is from outside, and that nothing moved
// before.
func (w *pairsWorld) do(ctx context.Context, c *pairsCall, ordered bool) {
	if err := coretest.CheckBooks(w.Stats()); err != nil { // may take time, in a callback
		w.fatalf("%v", err)
	}
	w.mu.Lock()
	w.made++
	w.left--
	over := w.left < 0
	w.mu.Unlock()
	if over {
		return
	}
	if c.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.patience)
		defer cancel()
	}
	w.tracef("call %d %s", c.number, c.kind)
	k := slices.IndexFunc(pairsKinds, func(k pairsKind) bool { return k.name == c.kind })
	switch {
	case k >= 0:
		if c.kind == "Do" || c.kind == "Future" || c.kind == "Group" {
			r := &pairsRoom{pairsCall: c, unknown: true, refused: -1}
			defer w.locked(func() { r.waits = false })
			w.comes(ctx, r)
		}
		pairsKinds[k].call(w, ctx, c)
	case c.kind == "Sleep":
		time.Sleep(c.span)
	default:
		w.enqueue(ctx, c, ordered)
	}
}

// comes notes an item that may have to wait for room. Items from a body never wait.
func (w *pairsWorld) comes(ctx context.Context, r *pairsRoom) {
	if _, body := ctx.Value(pairsOpKey{}).(*pairsOp); body {
		return
	}
	w.locked(func() {
		r.unknown = r.unknown || !w.open[r.pairsCall]
		r.waits = r.waits || r.unknown && r.kind != "TryEnqueue"
		w.rooms = append(w.rooms, r)
	})
}

// enqueue is Enqueue or TryEnqueue.
func (w *pairsWorld) enqueue(ctx context.Context, c *pairsCall, ordered bool) {
	r := &pairsRoom{pairsCall: c, ordered: ordered, waits: c.kind == "Enqueue", refused: -1}
	defer w.locked(func() { r.waits = false })
	w.comes(ctx, r)
	plain, results := w.views(c)
	var err error
	switch {
	case w.futures && c.kind == "Enqueue":
		r.id, err = results.Enqueue(ctx, c)
	case w.futures:
		r.id, err = results.TryEnqueue(ctx, c)
	case c.kind == "Enqueue":
		r.id, err = plain.Enqueue(ctx, c)
	default:
		r.id, err = plain.TryEnqueue(ctx, c)
	}
	w.accepted(c, r.id, err)
	if errors.Is(err, core.ErrFull) && ordered && c.settles && !w.opts.DropOldest {
		w.locked(func() { r.refused = w.made })
	}
}

func (w *pairsWorld) views(c *pairsCall) (plain *core.Coordinator[*pairsCall], results *core.ResultCoordinator[*pairsCall, int]) {
	plain, results = w.plain, w.results
	lane, class := w.places(c)
	if w.futures {
		if lane.Name != "" {
			results = results.Lane(lane.Name)
		}
		if class.Name != "" {
			results = results.Class(class.Name)
		}
		return nil, results
	}
	if lane.Name != "" {
		plain = plain.Lane(lane.Name)
	}
	if class.Name != "" {
		plain = plain.Class(class.Name)
	}
	return plain, nil
}

func (w *pairsWorld) accepted(c *pairsCall, id core.OperationID, err error) {
	w.tracef("call %d: operation %d, %v", c.number, id, err)
	w.locked(func() {
		if err == nil {
			w.ids = append(w.ids, id)
		}
	})
}

// some returns the operation that a call is about, or 0.
func (w *pairsWorld) some(c *pairsCall) (id core.OperationID) {
	if c.target < 0 {
		return core.OperationID(-c.target)
	}
	w.locked(func() {
		if n := len(w.ids); n > c.target {
			id = w.ids[n-1-c.target]
		}
	})
	return id
}

// ended checks what a wait for an operation has returned.
func (w *pairsWorld) ended(ctx context.Context, c *pairsCall, id core.OperationID, err error) {
	w.tracef("call %d: waited for %d: %v", c.number, id, err)
	if ctx.Err() != nil || errors.Is(err, core.ErrUnknown) || errors.Is(err, core.ErrWouldDeadlock) || w.opts.OnDone == nil {
		return
	}
	w.locked(func() {
		if !w.returned[id] {
			w.fatalf("a wait for operation %d ended before its OnDone, with %v", id, err)
		}
	})
}

type pairsKind struct {
	name string
	call func(w *pairsWorld, ctx context.Context, c *pairsCall)
}

// The kinds of calls, besides Enqueue, TryEnqueue and Sleep. It is set in init because bodies make calls.
var pairsKinds []pairsKind

func init() {
	suspends := func(fn func(w *pairsWorld, ctx context.Context, c *pairsCall)) func(*pairsWorld, context.Context, *pairsCall) {
		return func(w *pairsWorld, ctx context.Context, c *pairsCall) { w.waiting(ctx, func() { fn(w, ctx, c) }) }
	}
	pairsKinds = []pairsKind{
		{"Do", suspends(func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			var err error
			if plain, results := w.views(c); w.futures {
				_, err = results.Do(ctx, c)
			} else {
				err = plain.Do(ctx, c)
			}
			w.tracef("call %d: %v", c.number, err)
			if _, body := ctx.Value(pairsOpKey{}).(*pairsOp); body && !w.keyed && errors.Is(err, core.ErrWouldDeadlock) {
				w.fatalf("call %d: got %v, want it to wait", c.number, err)
			}
		})},
		{"Wait", suspends(func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			var err error
			id := w.some(c)
			if w.futures {
				_, err = w.results.Wait(ctx, id)
			} else {
				err = w.plain.Wait(ctx, id)
			}
			w.ended(ctx, c, id, err)
		})},
		{"Future", func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			_, results := w.views(c)
			if !w.futures {
				return
			}
			f, err := results.Submit(ctx, c)
			if err != nil {
				return
			}
			w.accepted(c, f.ID(), nil)
			w.waiting(ctx, func() {
				_, err = f.Wait(ctx)
				w.ended(ctx, c, f.ID(), err)
			})
		}},
		{"Group", func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			plain, _ := w.views(c)
			if w.futures {
				return
			}
			g := plain.Group(ctx, core.GroupOptions{StopOnError: c.target > 1})
			for range 1 + c.target {
				id, err := g.Enqueue(ctx, c)
				w.accepted(c, id, err)
			}
			w.waiting(ctx, func() { w.tracef("call %d: %v", c.number, g.Wait()) })
		}},
		{"Suspend", func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			w.waiting(ctx, func() {
				core.OperationFrom(ctx).Suspend(ctx, "a test", func(ctx context.Context) error {
					time.Sleep(c.span)
					for _, c := range c.after {
						w.do(ctx, c, false)
					}
					return nil
				})
			})
		}},
		{"Pin", func(w *pairsWorld, _ context.Context, c *pairsCall) {
			if unpin, ok := w.Pin(w.some(c)); ok {
				w.locked(func() { w.unpins = append(w.unpins, unpin) })
			}
		}},
		{"Evict", func(w *pairsWorld, _ context.Context, c *pairsCall) {
			id := w.some(c)
			w.tracef("call %d: evict %d, %v", c.number, id, w.Evict(id))
		}},
		{"Cancel", func(w *pairsWorld, _ context.Context, c *pairsCall) { w.Cancel(w.some(c), nil) }},
		{"Abort", func(w *pairsWorld, _ context.Context, c *pairsCall) { w.Abort(nil) }},
		{"Close", func(w *pairsWorld, _ context.Context, c *pairsCall) { w.Close() }},
		{"Stop", func(w *pairsWorld, ctx context.Context, c *pairsCall) { w.Stop(ctx) }},
		{"Drain", func(w *pairsWorld, ctx context.Context, c *pairsCall) { w.Drain(ctx) }},
		{"Complete", func(w *pairsWorld, ctx context.Context, c *pairsCall) { w.Complete() }},
		{"Flush", func(w *pairsWorld, ctx context.Context, c *pairsCall) { w.Flush(ctx) }},
		{"WaitIdle", func(w *pairsWorld, ctx context.Context, c *pairsCall) { w.WaitIdle(ctx) }},
		{"Pause", func(w *pairsWorld, _ context.Context, c *pairsCall) { w.Pause() }},
		{"Resume", func(w *pairsWorld, _ context.Context, c *pairsCall) { w.Resume() }},
		{"SetMaxConcurrency", func(w *pairsWorld, _ context.Context, c *pairsCall) {
			w.locked(func() { w.surplus, w.limit = max(w.surplus, w.limit), 1+c.target })
			w.SetMaxConcurrency(1 + c.target)
		}},
		{"SetShadow", func(w *pairsWorld, _ context.Context, c *pairsCall) {
			shadows := []*core.Limits{nil, {Limit: 1}, {Rate: core.AtMost(1, time.Millisecond)}, {CostRate: core.PerMinute(1), Rate: core.PerMinute(1)}}
			if w.opts.Classes == nil || c.lane == 0 {
				w.Control.SetShadow(shadows[c.target])
				return
			}
			class := w.opts.Classes[c.lane]
			class.Shadow = shadows[c.target]
			if err := w.SetClass(class); err != nil {
				w.fatalf("SetClass: %v", err)
			}
		}},
		{"Raise", func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			if o := core.OperationFrom(ctx); o != nil {
				o.Raise(c.name)
			} else {
				w.opts.Sink.Raise(c.name)
			}
		}},
		{"Hold", func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			if o := core.OperationFrom(ctx); o != nil {
				o.Hold(c.name, c.span)
				return
			}
			release := w.opts.Sink.Hold(c.name, "", c.span)
			w.locked(func() { w.releases = append(w.releases, release) })
		}},
		{"Retract", func(w *pairsWorld, ctx context.Context, c *pairsCall) { w.opts.Sink.Retract(c.name) }},
		{"await the end of the context", func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}},
		{"fail", func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			if o, _ := ctx.Value(pairsOpKey{}).(*pairsOp); o != nil {
				o.report = true
			}
		}},
		{"panic", func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			panic(onPurpose)
		}},
		{"Goexit", func(w *pairsWorld, ctx context.Context, c *pairsCall) {
			if ctx.Value(pairsOpKey{}) != nil { // only a body may
				runtime.Goexit()
			}
		}},
	}
}

// settle waits until nothing moves, and checks the state.
func (w *pairsWorld) settle() {
	synctest.Wait()
	looked := make(chan struct{})
	go func() { // as a callback may end the goroutine
		defer close(looked)
		w.look()
	}()
	<-looked
}

// look checks what must hold while nothing moves: the counters, the limits, and that no operation waits that
// could go on.
func (w *pairsWorld) look() {
	made, now := w.made, time.Now()
	s := w.Stats()
	v := pairsView{pairsWorld: w, s: s, alive: slices.Collect(w.Operations(core.OperationQuery{Status: core.StatusAlive}))}
	v.books()
	v.limits()
	v.shadows()
	v.pending()
	v.suspended()
	v.rooms()
	w.locked(func() {
		if len(v.faults) > 0 && made == w.made && now.Equal(time.Now()) { // no callback was called on the way
			w.fatalf("%s\n%v", strings.Join(v.faults, "\n"), s)
		}
		w.limit, w.surplus = s.Limit, min(w.surplus, s.Running)
		for _, r := range w.rooms {
			r.refused = -1
		}
	})
}

// pairsView is the state while nothing moves.
type pairsView struct {
	*pairsWorld
	s      core.Stats
	alive  []core.Snapshot
	faults []string
}

func (v *pairsView) faultf(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

func (v *pairsView) count(is func(core.Snapshot) bool) (n int) {
	for _, o := range v.alive {
		if is(o) {
			n++
		}
	}
	return n
}

func (v *pairsView) books() {
	if err := coretest.CheckBooks(v.s); err != nil {
		v.faultf("%v", err)
	}
	for status, want := range map[core.Status]int{core.StatusPending: v.s.Pending, core.StatusRunning: v.s.Running, core.StatusSuspended: v.s.Suspended} {
		if got := v.count(func(o core.Snapshot) bool { return o.Status == status }); got != want {
			v.faultf("%d operations are %v, but Stats says %d", got, status, want)
		}
	}
	pending, running := 0, 0
	for _, l := range v.s.Lanes {
		pending, running = pending+l.Pending, running+l.Running
	}
	if len(v.s.Lanes) > 0 && (pending != v.s.Pending || running != v.s.Running) {
		v.faultf("the lanes have %d pending and %d running", pending, running)
	}
}

func (v *pairsView) limits() {
	tracked, failed := v.opts.MaxTracked, v.opts.MaxFailed
	if failed == 0 && tracked < 0 {
		failed = -1
	}
	most := v.s.Pinned
	for _, n := range []int{tracked, failed} {
		if n == 0 {
			n = 200
		}
		most += max(0, n)
	}
	if v.s.Tracked > most {
		v.faultf("%d operations in the window, want at most %d", v.s.Tracked, most)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if most := max(v.s.Limit, v.surplus); v.s.Running > most {
		v.faultf("%d run, want at most %d", v.s.Running, most)
	}
	if v.counts["all"] > v.s.Running {
		v.faultf("%d bodies run, but Stats says %d", v.counts["all"], v.s.Running)
	}
}

// shadows checks what must hold for shadows, and that Explain knows which operations would wait.
func (v *pairsView) shadows() {
	all := []core.ShadowStats{v.s.Shadow}
	for _, c := range v.s.Classes {
		all = append(all, c.Shadow)
	}
	for _, s := range all {
		if s.Waited+s.Refused > s.Started || uint64(s.Waiting) > s.Waited || s.Waited > 0 && s.Longest < 0 {
			v.faultf("shadow: %+v", s)
		}
	}
	for _, o := range v.alive {
		if o.Status == core.StatusRunning {
			v.Explain(o.ID)
		}
	}
}

// full says what keeps an item from starting now, other than earlier items with its key.
func (v *pairsView) full(lane core.Lane, class core.Class, key string) bool {
	has := func(pattern string) bool { return pattern != "" && (v.opts.Sink.Has(pattern) || v.Has(pattern)) }
	switch {
	case v.s.Paused, v.s.Running+max(0, v.s.Suspended-v.suspends) >= v.s.Limit, has(v.opts.DeferOn), has(lane.DeferOn):
		return true
	}
	running := func(is func(core.Snapshot) bool) int {
		return v.count(func(o core.Snapshot) bool { return o.Status == core.StatusRunning && is(o) })
	}
	return lane.Limit > 0 && running(func(o core.Snapshot) bool { return o.Lane == lane.Name }) >= lane.Limit ||
		class.Limit > 0 && running(func(o core.Snapshot) bool { return o.Class == class.Name }) >= class.Limit ||
		key != "" && v.count(func(o core.Snapshot) bool { return o.Key == key && o.Status != core.StatusPending }) >= v.perKey
}

// before reports whether an earlier item with that key is pending in the lane.
func (v *pairsView) before(lane, key string, id core.OperationID) bool {
	return key != "" && v.count(func(o core.Snapshot) bool {
		return o.Status == core.StatusPending && o.Key == key && o.Lane == lane && (id == 0 || o.ID < id)
	}) > 0
}

// pending checks that no pending operation could start, and that Explain says what each waits for.
func (v *pairsView) pending() {
	for _, o := range v.alive {
		if o.Status != core.StatusPending {
			continue
		}
		lane, class := v.places(o.Item.(*pairsCall))
		x, _ := v.Explain(o.ID)
		if !v.full(lane, class, o.Key) && !v.before(o.Lane, o.Key, o.ID) {
			v.faultf("operation %d, item of call %d, waits though it could start: %v", o.ID, o.Item.(*pairsCall).number, x)
		} else if len(x.Reasons) == 0 {
			v.faultf("Explain does not say why operation %d waits", o.ID)
		}
	}
}

// suspended checks that Explain says what each suspended operation waits for, and that none waits for a slot that is free.
func (v *pairsView) suspended() {
	for _, o := range v.alive {
		if o.Status != core.StatusSuspended {
			continue
		}
		x, _ := v.Explain(o.ID)
		var kinds []core.ReasonKind
		for _, r := range x.Reasons {
			if r.Operation == o.ID {
				kinds = append(kinds, r.Kind)
			}
		}
		if len(kinds) == 0 || len(kinds) == 1 && kinds[0] == core.ReasonResuming {
			v.faultf("suspended operation %d does not go on, and Explain does not say why: %v", o.ID, x)
		}
	}
}

// rooms checks that items which wait for room, or were refused, have no room and could not start.
func (v *pairsView) rooms() {
	v.mu.Lock()
	rooms := slices.Clone(v.pairsWorld.rooms)
	made, inside := v.made, v.inside > 0
	v.mu.Unlock()
	for i, r := range rooms {
		if r.unknown || (!r.waits || inside) && r.refused != made { // the callback may hold up a call inside it
			continue
		}
		lane, class := v.places(r.pairsCall)
		key := r.key
		if !v.keyed {
			key = ""
		}
		depth := cmp.Or(class.Depth, lane.Depth, v.opts.MaxQueued, 1024)
		queued := v.count(func(o core.Snapshot) bool {
			return o.Status == core.StatusPending && o.Lane == lane.Name && o.Class == class.Name
		})
		earlier := key != "" && slices.ContainsFunc(rooms[:i], func(e *pairsRoom) bool { return e.waits && e.key == key && (lane.Name == "" || e.lane == r.lane) })
		switch {
		case v.s.Closed && r.waits:
			v.faultf("call %d waits for room though the intake has ended", r.number)
		case queued < depth:
			v.faultf("call %d gets no room, though %d of %d are pending", r.number, queued, depth)
		case !v.full(lane, class, key) && !v.before(lane.Name, key, 0) && !earlier:
			v.faultf("call %d gets no room, though it could start", r.number)
		}
	}
}

// checkEnded checks that everything has ended, long after the last obstacle from outside.
func (w *pairsWorld) checkEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	alive := 0
	for o := range w.Operations(core.OperationQuery{Status: core.StatusAlive}) {
		alive++
		x, _ := w.Explain(o.ID)
		if !slices.ContainsFunc(x.Reasons, func(r core.Reason) bool { return r.Kind == core.ReasonDeferred }) { // by what an operation has raised or holds
			w.fatalf("operation %d waits for ever: %v", o.ID, x)
		}
	}
	for c := range w.open {
		if alive == 0 && !w.Has("wait, wait.lane") { // which an operation in the window has raised
			w.fatalf("call %d %s does not return: %v", c.number, c.kind, w.Stats())
		}
	}
}

// checkClosed checks the end.
func (w *pairsWorld) checkClosed() {
	s := w.Stats()
	if err := coretest.CheckBooks(s); err != nil || s.Pending+s.Running+s.Suspended+s.Tracked+s.Pinned != 0 || !s.Closed || w.counts["all"] != 0 {
		w.fatalf("after Close: %v, %v; want nothing left", s, err)
	}
	outcomes := make(map[core.Status]uint64)
	started := make(map[string]time.Time) // by place: the newest start
	ids := make([]core.OperationID, 0, len(w.final))
	for id, o := range w.final {
		outcomes[o.Status]++
		ids = append(ids, id)
	}
	for status, n := range map[core.Status]uint64{core.StatusSucceeded: s.Succeeded, core.StatusFailed: s.Failed, core.StatusCancelled: s.Cancelled, core.StatusRefused: s.Refused, core.StatusDropped: s.Dropped} {
		if outcomes[status] != n {
			w.fatalf("OnFinalized was called for %d operations that were %v, but Stats says %v", outcomes[status], status, s)
		}
	}
	if w.opts.OnDone != nil && uint64(len(w.returned)) != s.Enqueued {
		w.fatalf("OnDone was called for %d operations, but Stats says %v", len(w.returned), s)
	}
	slices.Sort(ids)
	for _, id := range ids {
		o := w.final[id]
		if place, ordered := w.place(o.Lane, o.Class, o.Key); ordered && !o.Started.IsZero() {
			if o.Started.Before(started[place]) {
				w.fatalf("operation %d started before an earlier one of %s", id, place)
			}
			started[place] = o.Started
		}
	}
	newest := make(map[string]core.OperationID)
	for _, r := range w.rooms {
		lane, class := w.places(r.pairsCall)
		place, ordered := w.place(lane.Name, class.Name, r.key)
		if place += " of class " + class.Name; ordered && r.ordered && r.id != 0 { // each class has room of its own
			if r.id < newest[place] {
				w.fatalf("call %d got room as operation %d, before an earlier one of %s", r.number, r.id, place)
			}
			newest[place] = r.id
		}
	}
}

// place names the items whose order is promised: those of a key in a lane, or, without keys, those of a lane and class.
func (w *pairsWorld) place(lane, class, key string) (place string, ordered bool) {
	if w.keyed {
		return fmt.Sprintf("key %q in lane %q", key, lane), key != "" && w.perKey == 1
	}
	return fmt.Sprintf("class %q in lane %q", class, lane), true
}
