package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/internal/schedtest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The engine beside a simple model of it, made of slices on one goroutine. Both get the same random calls. After
// every call, when nothing moves any more, they must show the same. Of four coordinators, one has lanes, one has
// keys, and one has both. Some have classes.
func TestEngineModel(t *testing.T) {
	const perSeed = 500
	for seed := range uint64(long.Often(1000, 20)) {
		synctest.Test(t, func(t *testing.T) {
			d := newModelDriver(t, seed)
			for range perSeed {
				d.step()
			}
			d.finish()
		})
		if t.Failed() {
			return
		}
	}
}

// modelOp is an operation as the model knows it.
type modelOp struct {
	n      int // the item
	lane   int
	class  int
	cost   int
	key    string
	id     core.OperationID
	status core.Status

	enqueued, started, finished time.Time

	cancelling bool
	stubborn   bool // its body ignores its context
	answered   bool // its wait is over, and it wants its slot back
	pins       int
	aside      bool
	evicted    bool
	command    chan func(ctx context.Context) error
	answer     chan struct{} // ends its Suspend
}

func (o *modelOp) String() string {
	return fmt.Sprintf("#%d(id %d, lane %d, class %d, cost %d, key %q)", o.n, o.id, o.lane, o.class, o.cost, o.key)
}

func (o *modelOp) Place() (lane, class int, key string, enqueued int64) {
	return o.lane, o.class, o.key, o.enqueued.UnixNano()
}

func (o *modelOp) Cost() int64 { return int64(o.cost) }

// modelRule says which signals hold up the items of all lanes, or of one lane.
type modelRule struct {
	stop, wait string // "": none
	maxDefer   time.Duration

	deferring bool // because of facts that were raised,
	since     time.Time
}

// modelFact is a signal that gates react to.
type modelFact struct {
	name    string
	owner   *modelOp
	held    bool
	expires time.Time // zero: does not
	order   int
	release func()
}

type modelCall struct {
	what     string
	op       *modelOp // the operation the operation of an Enqueue or Do
	cancel   context.CancelFunc
	do       bool
	waitsFor []*modelOp // the operations that a Flush, Drain or Close waits for
	returned bool       // in the model
	wantErr  func(error) bool

	mu   sync.Mutex // guards what the real call did
	done bool
	id   core.OperationID
	err  error
}

func (c *modelCall) String() string {
	if c.op == nil {
		return c.what
	}
	return c.what + " of " + c.op.String()
}

// modelLog is a line of the log. It becomes text only if the test fails.
type modelLog struct {
	at     time.Time
	format string
	args   []any
}

type modelDriver struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	log    []modelLog

	opts    core.Options
	keyed   bool
	depths  [][]int  // by lane and class
	front   int      // the lane of items that are enqueued without one
	names   []string // of signals that gates react to
	narrow  bool     // many items wait for room
	sinkAge time.Duration
	sink    *signals.Sink
	c       *core.Coordinator[*modelOp]
	items   int
	calls   []*modelCall
	unpins  []modelPin

	mu        sync.Mutex
	over      chan struct{} // closed on failure: all bodies end
	started   []*modelOp    // operations that the engine has started operations that the model has started since the last look
	ids       map[*modelOp]core.OperationID
	finalized map[core.OperationID]int
	done      map[*modelOp]core.Status // as OnDone has said

	// The model.
	limit                                          int
	paused, completed, closing, closed             bool
	board                                          *schedtest.BoardModel[*modelOp] // what is pending and what runs
	tracked, failures, aside                       []*modelOp
	shouldStart                                    []*modelOp // operations that the model has started operations that the model has started since the last look
	all                                            []*modelOp // accepted
	facts                                          []*modelFact
	order                                          int
	rules                                          []modelRule // for all lanes, and then by lane, and then by class
	classLimits                                    []int       // without trials
	rejected, overflow                             uint64
	succeeded, failed, cancelled, refused, dropped uint64
	forced                                         uint64
	evictions                                      int
}

type modelPin struct {
	op    *modelOp
	unpin func()
}

var errModelCause = errors.New("cancelled by the model")

func newModelDriver(t *testing.T, seed uint64) *modelDriver {
	d := &modelDriver{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)),
		over:      make(chan struct{}),
		finalized: make(map[core.OperationID]int),
		done:      make(map[*modelOp]core.Status),
		ids:       make(map[*modelOp]core.OperationID),
	}
	pick := func(values ...int) int { return values[d.random.IntN(len(values))] }
	d.limit = pick(1, 1, 2, 3, 8)
	d.opts = core.Options{
		MaxConcurrency: d.limit,
		MaxQueued:      pick(-1, 1, 2, 3, 10, 100),
		MaxSuspended:   pick(-1, 0, 1),
		MaxTracked:     pick(-1, 1, 2, 5, 50),
		MaxFailed:      pick(-1, 1, 3),
		MaxAge:         time.Duration(pick(-1, -1, 10, 60)) * time.Second,
		DropOldest:     d.random.IntN(5) == 0,
		EchoCapacity:   pick(-1, 1, 20),
		CancelOn:       "stop",
		DeferOn:        "wait",
		MaxDefer:       time.Duration(pick(-1, 1, 5, 30)) * time.Second,
	}
	if d.random.IntN(2) == 0 {
		d.opts.ResumeOn, d.opts.MaxDefer = "go", -1
	}
	if d.opts.MaxAge > 0 {
		d.sinkAge = time.Duration(pick(0, 3, 20)) * time.Second
	}
	d.sink = signals.NewSink(signals.SinkOptions{MaxAge: cmp.Or(d.sinkAge, -1), Capacity: pick(1, 4, 1000)})
	d.opts.Sink = d.sink
	d.opts.OnDone = d.onDone
	d.shape(pick)
	var err error
	if d.keyed {
		d.c, err = core.NewKeyedCoordinator(func(o *modelOp) string { return o.key }, d.body, d.opts)
	} else {
		d.c, err = core.NewCoordinator(d.body, d.opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.opts.MaxTracked, d.opts.MaxFailed, d.opts.MaxAge = max(0, d.opts.MaxTracked), max(0, d.opts.MaxFailed), max(0, d.opts.MaxAge)
	d.opts.MaxSuspended = max(0, cmp.Or(d.opts.MaxSuspended, 1024))
	d.c.OnFinalized(func(s core.Snapshot) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.finalized[s.ID]++
	})
	return d
}

// onDone checks that it is called once for each end.
func (d *modelDriver) onDone(s core.Snapshot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := s.Item.(*modelOp)
	if d.done[o] != 0 || s.Status&core.StatusFinished == 0 {
		d.t.Errorf("seed %d: OnDone says that %v has %v, and has said that it has %v", d.seed, o, s.Status, d.done[o])
	}
	d.done[o] = s.Status
}

// shape gives the coordinator keys or lanes, or both, or neither.
func (d *modelDriver) shape(pick func(...int) int) {
	laned := d.seed&1 != 0
	d.keyed = d.seed&2 != 0
	d.names = []string{"stop", "wait", "go", "trial"} // the last one means nothing
	d.rules = []modelRule{{stop: "stop", wait: "wait", maxDefer: d.opts.MaxDefer}}
	perKey, ageing := 0, 0
	if d.keyed {
		d.opts.MaxPerKey = pick(0, 1, 2, 3)
		perKey = max(1, d.opts.MaxPerKey)
	}
	if laned || d.keyed {
		d.narrow = !d.opts.DropOldest && pick(0, 1) == 0
		if !d.narrow && !d.opts.DropOldest {
			d.opts.MaxQueued = 1000
		}
	}
	limits := []int{0}
	depths := []int{d.opts.MaxQueued}
	if laned {
		ageing = pick(-1, 1, 5)
		d.opts.Ageing = time.Duration(ageing) * time.Second
		limits, depths = nil, nil
		lanes := 1 + d.random.IntN(4)
		d.front = lanes - 1
		for i := range lanes {
			l := core.Lane{Name: fmt.Sprint("lane ", i), Limit: pick(0, 0, 1, 2, 3)}
			if pick(0, 0, 0, 1) == 1 && d.front == lanes-1 {
				l.Name, d.front = "normal", i
			}
			if d.opts.DropOldest || d.narrow {
				l.Depth = pick(0, -1, 1, 2, 5)
			}
			l.CancelOn, l.DeferOn, l.MaxDefer = d.gates(fmt.Sprint(i), pick)
			d.opts.Lanes = append(d.opts.Lanes, l)
			limits = append(limits, l.Limit)
			depths = append(depths, cmp.Or(l.Depth, d.opts.MaxQueued))
		}
	} else {
		d.rules = append(d.rules, modelRule{})
	}
	classes := []int{0}
	d.rules = append(d.rules, modelRule{})
	for i := range max(0, pick(-1, -1, 1, 3)) {
		classes = append(classes, pick(0, 1, 1, 2, 3))
		c := core.Class{Name: fmt.Sprint("class ", i), Limit: classes[i+1], Rate: d.someRate(), CostRate: d.someRate()}
		c.CancelOn, c.DeferOn, c.MaxDefer = d.gates(fmt.Sprint("class.", i), pick)
		if pick(0, 0, 1) == 1 {
			c.TrialOn, c.Trials = fmt.Sprint("trial.", i), pick(0, 1, 2)
			d.names = append(d.names, c.TrialOn)
		}
		if d.opts.DropOldest || d.narrow {
			c.Depth = pick(0, 0, -1, 1, 4)
		}
		d.opts.Classes = append(d.opts.Classes, c)
	}
	for lane, depth := range depths {
		d.depths = append(d.depths, []int{depth})
		for _, c := range d.opts.Classes {
			d.depths[lane] = append(d.depths[lane], cmp.Or(c.Depth, depth))
		}
	}
	d.classLimits = slices.Clone(classes)
	d.board = schedtest.NewBoardModel[*modelOp](limits, classes, perKey, int64(max(0, ageing))*int64(time.Second))
	for i, c := range d.opts.Classes {
		d.board.SetRates(1+i, time.Now().UnixNano(), c.Rate, c.CostRate)
	}
	if d.keyed && pick(0, 1) == 1 {
		d.opts.KeyRate, d.opts.KeyCostRate = d.someRate(), d.someRate()
		d.board.SetKeyRates(time.Now().UnixNano(), d.opts.KeyRate, d.opts.KeyCostRate)
	}
}

// gates draws the signals that hold up the items of a lane or a class.
func (d *modelDriver) gates(of string, pick func(...int) int) (cancelOn, deferOn string, maxDefer time.Duration) {
	rule := modelRule{maxDefer: d.opts.MaxDefer}
	if pick(0, 0, 1) == 1 {
		rule.stop = "stop." + of
		d.names = append(d.names, rule.stop)
	}
	if pick(0, 0, 1) == 1 {
		rule.wait = "wait." + of
		d.names = append(d.names, rule.wait)
		if seconds := pick(0, -1, 1, 20); seconds != 0 && d.opts.ResumeOn == "" {
			maxDefer = time.Duration(seconds) * time.Second
			rule.maxDefer = maxDefer
		}
	}
	d.rules = append(d.rules, rule)
	return rule.stop, rule.wait, maxDefer
}

func (d *modelDriver) someRate() (r core.Rate) {
	if d.random.IntN(3) == 0 {
		r = core.Rate{PerSecond: 0.1 + 3*d.random.Float64(), Burst: 1 + d.random.IntN(5)}
	}
	return r
}

// endsWithSlot reports whether a suspended operation would end as soon as it had a slot. Whether that is before or after
// what else a new limit lets happen is not determined.
func (d *modelDriver) endsWithSlot() bool {
	return slices.ContainsFunc(d.board.Suspended, func(o *modelOp) bool { return o.answered && o.cancelling && !o.stubborn })
}

// setClass changes a class.
func (d *modelDriver) setClass(class int) {
	c := core.Class{Name: d.opts.Classes[class-1].Name, Limit: d.random.IntN(4), Rate: d.someRate(), CostRate: d.someRate()}
	if d.endsWithSlot() {
		return
	}
	d.logf("set class %+v", c)
	if err := d.c.SetClass(c); err != nil {
		d.fatalf("SetClass: %v", err)
	}
	d.classLimits[class] = c.Limit
	d.board.SetRates(class, time.Now().UnixNano(), c.Rate, c.CostRate)
}

// limitTrials sets the limits of classes on trial.
func (d *modelDriver) limitTrials() {
	for i, c := range d.opts.Classes {
		limit := d.classLimits[1+i]
		if trials := max(1, c.Trials); d.standing(c.TrialOn) != nil && (limit == 0 || trials < limit) {
			limit = trials
		}
		d.board.Classes[1+i] = limit
	}
}

// charge corrects what a body has taken.
func (d *modelDriver) charge(o *modelOp) {
	calls, cost := d.random.IntN(5)-2, d.random.IntN(11)-5
	d.logf("%v charges %d, %d", o, calls, cost)
	o.command <- func(ctx context.Context) error { core.OperationFrom(ctx).Charge(calls, cost); return errGoOn }
	d.board.Charge(o, [2]int64{int64(calls), int64(cost)}, time.Now().UnixNano())
}

func (d *modelDriver) body(ctx context.Context, o *modelOp) error {
	d.mu.Lock()
	d.started = append(d.started, o)
	d.ids[o] = core.OperationFrom(ctx).ID()
	d.mu.Unlock()
	cancelled := ctx.Done()
	if o.stubborn {
		cancelled = nil
	}
	for {
		select {
		case command := <-o.command:
			if err := command(ctx); err != errGoOn {
				return err
			}
		case <-cancelled:
			return ctx.Err()
		case <-d.over:
			return nil
		}
	}
}

// errGoOn is returned by a command that does not end its body.
var errGoOn = errors.New("go on")

func (d *modelDriver) newItem() *modelOp {
	d.items++
	o := &modelOp{n: d.items, stubborn: d.random.IntN(4) == 0, command: make(chan func(context.Context) error), answer: make(chan struct{})}
	o.lane, o.class, o.cost = d.random.IntN(len(d.depths)), d.random.IntN(len(d.board.Classes)), max(0, d.random.IntN(10)-3)
	if d.keyed {
		o.key = []string{"", "a", "b", "c", "d", "e"}[d.random.IntN(1+d.random.IntN(6))]
	}
	return o
}

// door returns where to enqueue an item.
func (d *modelDriver) door(o *modelOp) *core.Coordinator[*modelOp] {
	c := d.c.Cost(o.cost)
	if o.class > 0 {
		c = c.Class(d.opts.Classes[o.class-1].Name)
	}
	if len(d.opts.Lanes) == 0 || o.lane == d.front && d.random.IntN(2) == 0 {
		return c
	}
	return c.Lane(d.opts.Lanes[o.lane].Name)
}

func (d *modelDriver) setLimit(limit int) {
	if d.endsWithSlot() {
		return
	}
	d.logf("set limit %d", limit)
	d.limit = limit
	if err := d.c.SetMaxConcurrency(limit); err != nil {
		d.fatalf("SetMaxConcurrency: %v", err)
	}
}

func (d *modelDriver) logf(format string, args ...any) {
	d.log = append(d.log, modelLog{time.Now(), format, args})
}

func (d *modelDriver) fatalf(format string, args ...any) {
	d.t.Helper()
	close(d.over)
	d.c.Close()
	var log strings.Builder
	for _, l := range d.log[max(0, len(d.log)-200):] {
		fmt.Fprintf(&log, "\n  %s %s", l.at.Format("05.000"), fmt.Sprintf(l.format, l.args...))
	}
	d.t.Fatalf("seed %d, options %+v:\n%s\nafter%v", d.seed, d.opts, fmt.Sprintf(format, args...), &log)
}

// step makes one random call, on both sides, and compares.
func (d *modelDriver) step() {
	r := d.random
	any := func(list []*modelOp) *modelOp {
		if len(list) == 0 {
			return nil
		}
		return list[r.IntN(len(list))]
	}
	recent := func() *modelOp {
		if len(d.all) == 0 {
			return nil
		}
		o := d.all[max(0, len(d.all)-1-r.IntN(20))]
		if o.id == 0 {
			return nil // of a Do, and not started: its id is not known
		}
		return o
	}
	n := r.IntN(1000)
	switch {
	case n < 10:
		d.tryUnknownLane()
	case n < 180:
		d.tryEnqueue()
	case n < 330:
		d.enqueue(r.IntN(4) == 0)
	case n < 370: // the context the operation of an Enqueue or Do ends
		if len(d.calls) > 0 {
			d.giveUp(d.calls[r.IntN(len(d.calls))])
		}
	case n < 400:
		if o := any(d.board.Running); o != nil {
			d.charge(o)
		}
	case n < 408:
		if n := len(d.opts.Classes); n > 0 {
			d.setClass(1 + r.IntN(n))
		}
	case n < 590:
		if o := any(d.board.Running); o != nil {
			d.end(o)
		}
	case n < 640:
		if o := any(d.board.Suspended); o != nil && !o.answered {
			d.answer(o)
		}
	case n < 680:
		if o := recent(); o != nil {
			d.cancel(o)
		}
	case n < 720:
		if o := recent(); o != nil {
			d.pin(o)
		}
	case n < 760:
		if len(d.unpins) > 0 {
			i := r.IntN(len(d.unpins))
			d.unpin(d.unpins[i])
			if r.IntN(5) > 0 { // else once more, later
				d.unpins = slices.Delete(d.unpins, i, i+1)
			}
		}
	case n < 775:
		if o := recent(); o != nil {
			d.evict(o)
		}
	case n < 783:
		d.logf("pause")
		d.c.Pause()
		d.paused = true
	case n < 815:
		d.logf("resume")
		d.c.Resume()
		d.paused = false
		d.turnAway()
	case n < 845:
		limit := 1 + r.IntN(8)
		if d.dying() > 1 { // any of them may end first
			limit = min(limit, len(d.board.Running)+1)
		}
		d.setLimit(limit)
	case n < 855:
		d.raise(d.anyName("stop"))
	case n < 865:
		d.raise(d.anyName("wait"))
	case n < 870:
		d.raise(d.anyName("trial"))
	case n < 880:
		d.raise("go")
	case n < 915:
		d.retract([]string{d.anyName("stop"), d.anyName("wait"), d.anyName("trial"), "go", "*", "*", "*"}[r.IntN(7)])
	case n < 935:
		d.release()
	case n < 938: // chatter does not open gates
		for range 5 {
			d.sink.Raise("chatter")
		}
	case n < 978:
		d.advance(time.Duration(r.IntN(4000)+1) * time.Millisecond * time.Duration(1+r.IntN(3)))
	case n < 995:
		d.flush()
	case n < 996 && r.IntN(3) == 0:
		d.drain()
	case n < 997 && r.IntN(4) == 0:
		d.close()
	}
	d.compare()
}

// --- the calls

func (d *modelDriver) standing(name string) (newest *modelFact) {
	for _, f := range d.facts {
		if f.name == name {
			newest = f
		}
	}
	return newest
}

// anyName is a random signal of that kind.
func (d *modelDriver) anyName(kind string) string {
	for {
		if name := d.names[d.random.IntN(len(d.names))]; strings.HasPrefix(name, kind) {
			return name
		}
	}
}

// refusing is the signal that refuses o, "" if none does.
func (d *modelDriver) refusing(o *modelOp) string {
	for _, r := range d.rulesFor(o) {
		if d.standing(r.stop) != nil {
			return r.stop
		}
	}
	return ""
}

// refusal returns why a new item is refused, "" if it is accepted or may wait.
func (d *modelDriver) refusal(o *modelOp) (reason string, isIt func(error) bool) {
	name := d.refusing(o)
	switch {
	case d.completed:
		return "closed", isClosed
	case name != "":
		return "refused", func(err error) bool {
			var r *core.RefusedError
			return errors.As(err, &r) && r.Signal.Name == name
		}
	}
	return "", nil
}

// isFull reports whether there is no room for o.
func (d *modelDriver) isFull(o *modelOp) bool {
	return len(sameRoom(d.board.Pending, o)) >= d.depths[o.lane][o.class]
}

// sameRoom are the operations of the list that share the room of o.
func sameRoom(list []*modelOp, o *modelOp) (same []*modelOp) {
	for _, p := range list {
		if p.lane == o.lane && p.class == o.class {
			same = append(same, p)
		}
	}
	return same
}

// accept takes in an item that was just enqueued, or that has waited for room.
func (d *modelDriver) accept(o *modelOp) {
	d.count(o)
	d.board.Push(o)
}

// count counts an item as an accepted one. That ends its Enqueue.
func (d *modelDriver) count(o *modelOp) {
	o.status = core.StatusPending
	d.all = append(d.all, o)
	for _, call := range d.calls {
		if call.op == o && !call.do {
			call.returned = true
		}
	}
}

// force takes in an item for which there is no room: if it can start after all others that can start, or in place of
// the oldest item.
func (d *modelDriver) force(o *modelOp) bool {
	d.board.Wait(o)
	for d.startOne() {
	}
	if o.status != 0 {
		return true
	}
	d.board.Remove(o, time.Now().UnixNano())
	if oldest := d.board.Oldest(o.lane, o.class); d.opts.DropOldest && oldest != nil {
		d.accept(o)
		d.remove(oldest)
		d.dropped++
		d.retire(oldest, core.StatusDropped)
		return true
	}
	return false
}

// remove takes an item out of the queue. Then items that wait for room can enter.
func (d *modelDriver) remove(o *modelOp) {
	d.board.Remove(o, time.Now().UnixNano())
	d.letIn(o)
}

func (d *modelDriver) tryUnknownLane() {
	d.logf("try an unknown lane")
	_, err := d.c.Lane("no such lane").TryEnqueue(context.Background(), d.newItem())
	d.rejected++
	if want := core.ErrUnknownLane; !errors.Is(err, want) && !d.completed {
		d.fatalf("TryEnqueue: got error %v, want %v", err, want)
	}
}

func (d *modelDriver) tryEnqueue() {
	o := d.newItem()
	d.logf("try %v", o)
	id, err := d.door(o).TryEnqueue(context.Background(), o)
	o.id, o.enqueued = id, time.Now()
	_, want := d.refusal(o)
	accepted := false
	if want == nil && d.isFull(o) {
		if accepted = d.force(o); !accepted {
			want = isFull
		}
	}
	switch {
	case want != nil:
		d.rejected++
		if !want(err) || id != 0 {
			d.fatalf("TryEnqueue: got id %d and error %v", id, err)
		}
	case err != nil || id == 0:
		d.fatalf("TryEnqueue: got id %d and error %v, want it to be accepted", id, err)
	case !accepted:
		d.accept(o)
	}
}

func (d *modelDriver) enqueue(do bool) {
	o := d.newItem()
	ctx, cancel := context.WithCancel(context.Background())
	call := &modelCall{what: "Enqueue", op: o, cancel: cancel, do: do}
	if do {
		call.what = "Do"
	}
	d.logf("%v", call)
	o.enqueued = time.Now()
	reason, want := d.refusal(o)
	door := d.door(o)
	switch {
	case reason != "":
		d.rejected++
		call.returned, call.wantErr = true, want
	case !d.isFull(o):
		d.accept(o)
		call.returned = !do
	case !d.opts.DropOldest:
		d.board.Wait(o)
	case d.force(o):
		call.returned = !do || o.status&core.StatusFinished != 0
		if call.returned && do {
			call.wantErr = func(err error) bool { return err != nil } // refused
		}
	default:
		d.rejected++
		call.returned, call.wantErr = true, isFull
	}
	d.start(call, func() (core.OperationID, error) {
		if do {
			return 0, door.Do(ctx, o)
		}
		return door.Enqueue(ctx, o)
	})
}

func (d *modelDriver) start(call *modelCall, fn func() (core.OperationID, error)) {
	d.calls = append(d.calls, call)
	go func() {
		id, err := fn()
		call.mu.Lock()
		call.done, call.id, call.err = true, id, err
		call.mu.Unlock()
	}()
}

func (d *modelDriver) giveUp(call *modelCall) {
	if call.op == nil || call.returned {
		return
	}
	d.logf("the context of the %v ends", call)
	call.cancel()
	call.returned = true
	call.wantErr = func(err error) bool { return errors.Is(err, context.Canceled) }
	if slices.Contains(d.board.Waiting, call.op) {
		d.board.Remove(call.op, time.Now().UnixNano())
		d.rejected++
	} else {
		d.cancelOp(call.op)
	}
}

func (d *modelDriver) end(o *modelOp) {
	status, how := core.StatusFailed, "fails"
	command := func(context.Context) error { return errors.New("failed on purpose") }
	switch n := d.random.IntN(20); {
	case n < 10:
		status, how = core.StatusSucceeded, "succeeds"
		command = func(context.Context) error { return nil }
	case n < 13:
		how = "panics"
		command = func(context.Context) error { panic("panicked on purpose") }
	case n < 16:
		how = "ends its goroutine"
		command = func(context.Context) error { runtime.Goexit(); return nil }
	case n < 17 && d.mayRaise():
		name := d.names[d.random.IntN(len(d.names))]
		d.logf("%v raises %s", o, name)
		o.command <- func(ctx context.Context) error { core.OperationFrom(ctx).Raise(name); return errGoOn }
		d.addFact(&modelFact{name: name, owner: o})
		return
	case n < 18:
		d.suspend(o)
		return
	case n < 19:
		d.enqueueInside(o)
		return
	case n < 20 && d.mayRaise():
		name := d.names[d.random.IntN(len(d.names))]
		d.logf("%v retracts all %s", o, name)
		o.command <- func(ctx context.Context) error { core.OperationFrom(ctx).RetractMatching(name); return errGoOn }
		d.dropFacts(func(f *modelFact) bool { return f.owner == o && f.name == name })
		return
	}
	d.logf("%v %s", o, how)
	o.command <- command
	d.endOp(o, status)
}

// suspend lets a body wait without its slot until it gets an answer. With classes, it does not suspend a body that a
// cancellation ends. Such a body would have the slot of its lane for a moment, so an item of another class could start.
func (d *modelDriver) suspend(o *modelOp) {
	if len(d.opts.Classes) > 0 && !o.stubborn {
		return
	}
	d.logf("%v is suspended", o)
	o.command <- func(ctx context.Context) error {
		err := core.OperationFrom(ctx).Suspend(ctx, "an answer", func(ctx context.Context) error {
			cancelled := ctx.Done()
			if o.stubborn {
				cancelled = nil
			}
			select {
			case <-o.answer:
				return errGoOn
			case <-cancelled:
				return ctx.Err()
			case <-d.over:
				return nil
			}
		})
		return err
	}
	d.board.Suspend(o)
	o.status = core.StatusSuspended
	if o.cancelling && !o.stubborn {
		d.comeBack(o)
	}
}

// answer ends the wait of a suspended body.
func (d *modelDriver) answer(o *modelOp) {
	d.logf("%v has its answer", o)
	o.answer <- struct{}{}
	d.comeBack(o)
}

// comeBack lets a suspended operation wait for its slot.
func (d *modelDriver) comeBack(o *modelOp) {
	o.answered = true
	d.board.Want(o, time.Now().UnixNano())
}

// dying is how many operations will end when they have a slot again.
func (d *modelDriver) dying() (n int) {
	for _, o := range d.board.Back {
		if o.cancelling && !o.stubborn {
			n++
		}
	}
	return n
}

// enqueueInside lets a body enqueue an item. There is always room for it.
func (d *modelDriver) enqueueInside(by *modelOp) {
	o := d.newItem()
	d.logf("%v enqueues %v", by, o)
	door := d.door(o)
	o.enqueued = time.Now()
	var err error
	by.command <- func(ctx context.Context) error {
		if ctx.Err() == nil {
			o.id, err = door.Enqueue(ctx, o)
		} else {
			o.id, err = door.Enqueue(context.WithoutCancel(ctx), o)
		}
		return errGoOn
	}
	synctest.Wait()
	_, want := d.refusal(o)
	switch {
	case want != nil:
		d.rejected++
	case !d.isFull(o):
		d.accept(o)
	case !d.opts.DropOldest:
		d.overflow++
		d.accept(o)
	case !d.force(o):
		d.rejected++
		want = isFull
	}
	if want == nil && err != nil || want != nil && !want(err) {
		d.fatalf("Enqueue in a body: got error %v", err)
	}
}

// mayRaise reports whether bodies raise signals for gates. They do so only if the
// model knows when these signals go, and if nothing waits for room when an operation
// leaves the window with its signals.
func (d *modelDriver) mayRaise() bool { return d.sinkAge == 0 && d.opts.MaxAge == 0 && !d.narrow }

// endNow ends a body.
func (d *modelDriver) endNow(o *modelOp) {
	d.logf("%v ends", o)
	o.command <- func(context.Context) error { return nil }
	d.endOp(o, core.StatusSucceeded)
}

func (d *modelDriver) endOp(o *modelOp, status core.Status) {
	d.board.Finish(o, time.Now().UnixNano())
	switch {
	case status == core.StatusSucceeded:
		d.succeeded++
	case o.cancelling:
		status = core.StatusCancelled
		d.cancelled++
	default:
		d.failed++
	}
	d.retire(o, status)
}

func (d *modelDriver) cancel(o *modelOp) {
	d.logf("cancel %v", o)
	want := o.status&core.StatusAlive != 0
	if got := d.c.Cancel(o.id, errModelCause); got != want {
		d.fatalf("Cancel(%v): got %t, want %t", o, got, want)
	}
	d.cancelOp(o)
}

func (d *modelDriver) cancelOp(o *modelOp) {
	switch o.status {
	case core.StatusPending:
		d.remove(o)
		d.cancelled++
		d.retire(o, core.StatusCancelled)
	case core.StatusRunning:
		o.cancelling = true
		if !o.stubborn {
			d.endOp(o, core.StatusFailed)
		}
	case core.StatusSuspended:
		o.cancelling = true
		if !o.stubborn && !o.answered {
			d.comeBack(o)
		}
	}
}

func (d *modelDriver) known(o *modelOp) bool { return o.status != 0 && !o.evicted }

func (d *modelDriver) pinned() (n int) {
	for _, o := range d.all {
		if o.pins > 0 && !o.evicted {
			n++
		}
	}
	return n
}

func (d *modelDriver) pin(o *modelOp) {
	d.logf("pin %v", o)
	want := d.known(o) && (o.pins > 0 || d.pinned() < d.opts.MaxTracked)
	unpin, got := d.c.Pin(o.id)
	if got != want {
		d.fatalf("Pin(%v): got %t, want %t", o, got, want)
	}
	if got {
		o.pins++
		d.unpins = append(d.unpins, modelPin{o, d.unpinner(o, unpin)})
	}
}

// unpinner unpins on both sides. The second time it calls only the real unpin, which must
// have no effect.
func (d *modelDriver) unpinner(o *modelOp, unpin func()) func() {
	done := false
	return func() {
		unpin()
		if done || o.evicted {
			return
		}
		done = true
		if o.pins--; o.pins == 0 && o.aside {
			i := slices.Index(d.aside, o)
			d.aside = slices.Delete(d.aside, i, i+1)
			d.forget(o)
		}
	}
}

func (d *modelDriver) unpin(p modelPin) {
	d.logf("unpin %v", p.op)
	p.unpin()
}

func (d *modelDriver) evict(o *modelOp) {
	d.logf("evict %v", o)
	want := d.known(o) && o.status&core.StatusFinished != 0
	if got := d.c.Evict(o.id); got != want {
		d.fatalf("Evict(%v): got %t, want %t", o, got, want)
	}
	if !want {
		return
	}
	for _, list := range []*[]*modelOp{&d.tracked, &d.failures, &d.aside} {
		if i := slices.Index(*list, o); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
	d.forget(o)
}

func (d *modelDriver) raise(name string) {
	f := &modelFact{name: name}
	switch d.random.IntN(3) {
	case 0:
		lease := time.Duration(d.random.IntN(3)*5) * time.Second
		d.logf("hold %s for %v", name, lease)
		f.held, f.release = true, d.sink.Hold(name, "", lease)
		if lease > 0 {
			f.expires = time.Now().Add(lease)
		}
	default:
		d.logf("raise %s", name)
		d.sink.Raise(name)
		if d.sinkAge > 0 {
			f.expires = time.Now().Add(d.sinkAge)
		}
	}
	d.addFact(f)
}

func (d *modelDriver) retract(pattern string) {
	d.logf("retract %s", pattern)
	d.sink.Retract(pattern)
	d.dropFacts(func(f *modelFact) bool { return f.owner == nil && !f.held && signals.Match(pattern, f.name) })
}

func (d *modelDriver) release() {
	for _, f := range d.facts {
		if f.held {
			d.logf("release %s", f.name)
			f.release()
			f.release()
			d.dropFacts(func(g *modelFact) bool { return g == f })
			return
		}
	}
}

func (d *modelDriver) unfinished() []*modelOp {
	return slices.Concat(d.board.Pending, d.alive())
}

// alive are the operations that have started and not ended.
func (d *modelDriver) alive() []*modelOp { return slices.Concat(d.board.Running, d.board.Suspended) }

func (d *modelDriver) flush() {
	d.logf("flush")
	d.wait(&modelCall{what: "Flush", waitsFor: d.unfinished()}, func() error { return d.c.Flush(context.Background()) })
}

func (d *modelDriver) wait(call *modelCall, fn func() error) {
	d.start(call, func() (core.OperationID, error) { return 0, fn() })
}

func (d *modelDriver) complete() {
	d.completed = true
	for _, o := range slices.Clone(d.board.Waiting) {
		d.reject(o, isClosed)
	}
}

func isClosed(err error) bool { return errors.Is(err, core.ErrClosed) }

func isFull(err error) bool { return errors.Is(err, core.ErrFull) }

// reject ends the wait of an item for room.
func (d *modelDriver) reject(o *modelOp, want func(error) bool) {
	d.board.Remove(o, time.Now().UnixNano())
	d.rejected++
	for _, call := range d.calls {
		if call.op == o {
			call.returned, call.wantErr = true, want
		}
	}
}

func (d *modelDriver) drain() {
	d.logf("drain")
	call := &modelCall{what: "Drain", waitsFor: d.unfinished()}
	d.complete()
	d.wait(call, func() error { return d.c.Drain(context.Background()) })
}

func (d *modelDriver) close() {
	// If Close cancels several bodies, any of them may end first, and the windows cannot be
	// compared. So only one body is left.
	d.c.Pause()
	d.paused = true
	obedient := func(o *modelOp) bool { return !o.stubborn && !o.cancelling }
	for {
		alive := d.alive()
		i := slices.IndexFunc(alive, obedient)
		if i < 0 || !slices.ContainsFunc(alive[i+1:], obedient) {
			break
		}
		d.cancelOp(alive[i])
		d.c.Cancel(alive[i].id, errModelCause)
		d.compare()
	}
	d.logf("close")
	d.complete()
	call := &modelCall{what: "Close", waitsFor: d.alive()}
	if !d.closing {
		d.closing = true
		for len(d.board.Pending) > 0 {
			d.cancelOp(d.board.Pending[0])
		}
		for _, o := range d.alive() {
			d.cancelOp(o)
		}
		d.finalizeIfDone()
	}
	d.wait(call, d.c.Close)
}

func (d *modelDriver) finalizeIfDone() {
	if !d.closing || d.closed || len(d.unfinished()) > 0 {
		return
	}
	d.closed = true
	for _, o := range slices.Concat(d.tracked, d.failures, d.aside) {
		d.forget(o)
	}
	d.tracked, d.failures, d.aside = nil, nil, nil
}

// --- what follows from them

func (d *modelDriver) addFact(f *modelFact) {
	d.order++
	f.order = d.order
	d.facts = append(d.facts, f)
	d.noticeDeferral()
	d.turnAway()
}

// turnAway refuses what waits for room, and what is pending unless the coordinator is paused.
func (d *modelDriver) turnAway() {
	for _, o := range slices.Concat(d.board.Waiting, d.board.Pending) {
		_, want := d.refusal(o)
		switch {
		case d.refusing(o) == "":
		case slices.Contains(d.board.Waiting, o):
			d.reject(o, want)
		case !d.paused:
			d.remove(o)
			d.refused++
			d.retire(o, core.StatusRefused) // whose signals go may let the others stay
		}
	}
}

func (d *modelDriver) dropFacts(gone func(*modelFact) bool) {
	d.facts = slices.DeleteFunc(d.facts, gone)
	d.noticeDeferral()
}

func (d *modelDriver) noticeDeferral() {
	for i := range d.rules {
		r := &d.rules[i]
		deferring := slices.ContainsFunc(d.facts, func(f *modelFact) bool { return f.name == r.wait && !f.held })
		if deferring && !r.deferring {
			r.since = time.Now()
		}
		r.deferring = deferring
	}
}

func (d *modelDriver) retire(o *modelOp, status core.Status) {
	o.status, o.finished = status, time.Now()
	if status == core.StatusFailed {
		d.failures = append(d.failures, o)
	} else {
		d.tracked = append(d.tracked, o)
	}
	d.sweep()
	for _, call := range d.calls {
		if call.do && call.op == o && !call.returned {
			call.returned = true
			call.wantErr = func(err error) bool { return (err == nil) == (status == core.StatusSucceeded) }
		}
	}
	d.finalizeIfDone()
}

func (d *modelDriver) sweep() {
	d.sweepSome(&d.tracked, d.opts.MaxTracked)
	d.sweepSome(&d.failures, d.opts.MaxFailed)
}

func (d *modelDriver) sweepSome(list *[]*modelOp, most int) {
	for len(*list) > 0 {
		o := (*list)[0]
		if len(*list) <= most && (d.opts.MaxAge == 0 || time.Since(o.finished) < d.opts.MaxAge) {
			return
		}
		*list = (*list)[1:]
		if o.pins > 0 {
			o.aside = true
			d.aside = append(d.aside, o)
		} else {
			d.forget(o)
		}
	}
}

func (d *modelDriver) forget(o *modelOp) {
	o.evicted, o.pins = true, 0
	d.evictions++
	d.dropFacts(func(f *modelFact) bool { return f.owner == o })
}

// rulesFor are the rules that hold up o: the rules for all, for its lane and for its class.
func (d *modelDriver) rulesFor(o *modelOp) []*modelRule {
	return []*modelRule{&d.rules[0], &d.rules[1+o.lane], &d.rules[1+len(d.depths)+o.class]}
}

// due is the time until which raised signals of the rule can defer the operation. ok is
// false for held signals, and without MaxDefer: they have no limit.
func (d *modelDriver) due(r *modelRule, o *modelOp) (at time.Time, ok bool) {
	held := slices.ContainsFunc(d.facts, func(f *modelFact) bool { return f.name == r.wait && f.held })
	if r.maxDefer < 0 || held {
		return time.Time{}, false
	}
	at = o.enqueued
	if r.since.After(at) {
		at = r.since
	}
	return at.Add(r.maxDefer), true
}

// defers reports whether the rule holds items up.
func (d *modelDriver) defers(r *modelRule) bool {
	wait, resume := d.standing(r.wait), d.standing("go")
	return wait != nil && (resume == nil || d.opts.ResumeOn == "" || resume.order < wait.order)
}

// schedule starts, refuses and lets in what it can.
func (d *modelDriver) schedule() {
	for changed := true; changed; {
		d.limitTrials()
		changed = d.startOne()
	}
}

// resumeOne gives a slot to the first suspended operation that wants one, can have it, and goes before pending operations
// of the lane. A cancelled operation then ends.
func (d *modelDriver) resumeOne(now int64, before int) bool {
	o, aged := d.board.First(now, before)
	if o == nil || len(d.board.Running) >= d.limit {
		return false
	}
	d.board.Resume(o, aged)
	o.status, o.answered = core.StatusRunning, false
	if o.cancelling && !o.stubborn {
		d.endOp(o, core.StatusFailed)
	}
	return true
}

// highest is the highest lane in which something waits to start.
func (d *modelDriver) highest() int {
	lane := len(d.depths)
	for _, o := range slices.Concat(d.board.Pending, d.board.Waiting) {
		lane = min(lane, o.lane)
	}
	return lane
}

// full reports whether nothing that is pending may start.
func (d *modelDriver) full() bool {
	return len(d.board.Running)+max(0, len(d.board.Suspended)-d.opts.MaxSuspended) >= d.limit
}

// letIn accepts items that wait for the room of o, in the order in which they came.
func (d *modelDriver) letIn(o *modelOp) {
	for _, first := range sameRoom(d.board.Waiting, o) {
		if d.isFull(o) {
			return
		}
		d.board.Remove(first, time.Now().UnixNano())
		d.accept(first)
	}
}

// startOne starts the next operation that may start.
// It reports whether it has started or resumed one.
func (d *modelDriver) startOne() bool {
	type place struct{ lane, class int }
	barred := make(map[place]bool)
	isBarred := func(lane, class int) bool { return barred[place{lane, -1}] || barred[place{lane, class}] }
	for !d.full() && !d.paused && !d.closing {
		if d.resumeOne(0, d.highest()) { // whatever has aged
			return true
		}
		now := time.Now().UnixNano()
		d.board.Advance(now)
		d.limitTrials() // operations that were refused may have pushed signals out
		o, aged := d.board.Next(now, isBarred)
		if o == nil {
			break
		}
		if d.resumeOne(now, o.lane) {
			return true
		}
		if d.refusing(o) != "" {
			panic("the model starts an operation that it should have refused")
		}
		waits, overdue := false, false
		ask := func(o *modelOp, rules []*modelRule) {
			for _, r := range rules {
				if d.defers(r) {
					due, ok := d.due(r, o)
					past := ok && !due.After(time.Now())
					waits, overdue = waits || !past, overdue || past
				}
			}
		}
		first := d.board.Earliest(o, false, now, isBarred)
		if ask(first, d.rulesFor(o)[:2]); waits {
			barred[place{o.lane, -1}] = true
			continue
		}
		if !overdue {
			first = d.board.Earliest(o, true, now, isBarred)
		}
		if ask(first, d.rulesFor(first)[2:]); waits {
			barred[place{o.lane, first.class}] = true
			continue
		}
		if overdue {
			o = first
			d.forced++
		}
		if o.cancelling {
			panic("the model cancelled a pending operation and starts it")
		}
		d.admit(o)
		d.board.Start(o, aged, now)
		d.letIn(o)
		o.status, o.started = core.StatusRunning, time.Now()
		d.shouldStart = append(d.shouldStart, o)
		return true
	}
	return d.resumeOne(time.Now().UnixNano(), len(d.depths))
}

// admit accepts an item that has waited for room and leaves the queue at once.
func (d *modelDriver) admit(o *modelOp) {
	if o.status == 0 {
		d.count(o)
	}
}

// advance lets time pass, from one timed event to the next.
func (d *modelDriver) advance(by time.Duration) {
	d.logf("%v pass", by)
	until := time.Now().Add(by)
	for time.Now().Before(until) {
		next := until
		soonest := func(at time.Time) {
			if at.After(time.Now()) && at.Before(next) {
				next = at
			}
		}
		for _, f := range d.facts {
			if !f.expires.IsZero() {
				soonest(f.expires)
			}
		}
		for _, o := range slices.Concat(d.board.Waiting, d.board.Pending) {
			for _, r := range d.rulesFor(o) {
				if due, ok := d.due(r, o); ok {
					soonest(due)
				}
			}
			now := time.Now().UnixNano()
			for _, due := range []int64{d.board.Due(o, now), d.board.KeyDue(o, now)} {
				soonest(time.Unix(0, due))
			}
		}
		time.Sleep(time.Until(next))
		synctest.Wait()
		d.dropFacts(func(f *modelFact) bool { return !f.expires.IsZero() && !f.expires.After(time.Now()) })
		d.schedule()
	}
	d.sweep()
}

// --- comparing

func (d *modelDriver) compare() {
	d.schedule()
	synctest.Wait()
	got := d.c.Stats()
	if err := coretest.CheckBooks(got); err != nil {
		d.fatalf("%v", err)
	}
	want := core.Stats{
		Enqueued: uint64(len(d.all)), Succeeded: d.succeeded, Failed: d.failed, Cancelled: d.cancelled,
		Refused: d.refused, Dropped: d.dropped, Pending: len(d.board.Pending), Running: len(d.board.Running),
		Suspended: len(d.board.Suspended), Overflow: d.overflow, Rejected: d.rejected, Limit: d.limit, Tracked: len(d.tracked) + len(d.failures) + len(d.aside), Pinned: d.pinned(),
		Forced: d.forced, Paused: d.paused, Closed: d.completed,
	}
	for i, l := range d.opts.Lanes {
		want.Lanes = append(want.Lanes, core.LaneStats{
			Name: l.Name, Limit: l.Limit, Depth: d.depths[i][0],
			Pending: d.board.InLane(d.board.Pending, i), Running: d.board.InLane(d.board.Running, i),
		})
	}
	for i, c := range d.opts.Classes {
		want.Classes = append(want.Classes, core.ClassStats{
			Name: c.Name, Limit: d.board.Classes[i+1], Pending: d.board.InClass(d.board.Pending, i+1), Running: d.board.InClass(d.board.Running, i+1),
		})
	}
	for i := range got.Classes { // the tokens that a class has taken show in the starts
		c := &got.Classes[i]
		c.Calls, c.Cost, c.Next = core.RateStats{}, core.RateStats{}, time.Time{}
		if d.completed { // signals count no more once all is done
			c.Limit = want.Classes[i].Limit
		}
	}
	if !reflect.DeepEqual(got, want) {
		d.fatalf("stats differ\n got: %v\nwant: %v", got, want)
	}
	if got.Tracked > d.opts.MaxTracked+d.opts.MaxFailed+got.Pinned {
		d.fatalf("%d operations in the window, of which %d pinned; want at most %d besides those", got.Tracked, got.Pinned, d.opts.MaxTracked)
	}
	d.mu.Lock()
	started := d.started
	d.started = nil
	for _, o := range started {
		if o.id != 0 && o.id != d.ids[o] {
			d.fatalf("%v: its body says it is %d", o, d.ids[o])
		}
		o.id = d.ids[o]
	}
	finalized := len(d.finalized)
	d.mu.Unlock()
	byNumber := func(a, b *modelOp) int { return a.n - b.n }
	slices.SortFunc(started, byNumber)
	slices.SortFunc(d.shouldStart, byNumber)
	if !slices.Equal(started, d.shouldStart) {
		d.fatalf("started %v, want %v", started, d.shouldStart)
	}
	d.shouldStart = d.shouldStart[:0]
	for _, o := range d.all {
		if finished := o.status & core.StatusFinished; d.done[o] != finished {
			d.fatalf("%v has %v, but OnDone has said %v", o, o.status, d.done[o])
		}
	}
	if finalized != d.evictions {
		d.fatalf("%d operations were finalized, want %d", finalized, d.evictions)
	}
	d.compareCalls()
	if len(d.all) > 0 {
		d.compareOp(d.all[len(d.all)-1-d.random.IntN(min(len(d.all), 30))])
	}
}

func (d *modelDriver) compareCalls() {
	d.calls = slices.DeleteFunc(d.calls, func(call *modelCall) bool {
		call.mu.Lock()
		defer call.mu.Unlock()
		returned := call.returned
		if call.op == nil {
			returned = !slices.ContainsFunc(call.waitsFor, func(o *modelOp) bool { return o.status&core.StatusFinished == 0 })
		}
		if call.done != returned {
			d.fatalf("%v: returned is %t (with error %v), want %t", call, call.done, call.err, returned)
		}
		if !returned {
			return false
		}
		if call.wantErr == nil && call.err != nil || call.wantErr != nil && !call.wantErr(call.err) {
			d.fatalf("%v: got error %v", call, call.err)
		}
		if call.op != nil && call.id != 0 {
			call.op.id = call.id
		}
		if call.cancel != nil {
			call.cancel()
		}
		return true
	})
}

func (d *modelDriver) compareOp(o *modelOp) {
	if o.id == 0 {
		return // of a Do
	}
	s, ok := d.c.Lookup(o.id)
	if ok != d.known(o) {
		d.fatalf("Lookup(%v): got %t, want %t", o, ok, d.known(o))
	}
	lane := ""
	if len(d.opts.Lanes) > 0 {
		lane = d.opts.Lanes[o.lane].Name
	}
	class := ""
	if o.class > 0 {
		class = d.opts.Classes[o.class-1].Name
	}
	if ok && (s.Lane != lane || s.Class != class || s.Key != o.key) {
		d.fatalf("Lookup(%v): got lane %q, class %q and key %q, want %q, %q and %q", o, s.Lane, s.Class, s.Key, lane, class, o.key)
	}
	if ok && (s.Status != o.status || s.Pins != o.pins || !s.Enqueued.Equal(o.enqueued) || !s.Started.Equal(o.started) || !s.Finished.Equal(o.finished)) {
		d.fatalf("Lookup(%v): got %+v, want status %v, %d pins, enqueued %v, started %v, finished %v", o, s, o.status, o.pins, o.enqueued, o.started, o.finished)
	}
}

// finish closes the coordinator and checks what is left.
func (d *modelDriver) finish() {
	d.close()
	d.compare()
	for len(d.alive()) > 0 {
		if len(d.board.Running) > 0 {
			d.endNow(d.board.Running[0])
		} else {
			d.answer(d.board.Suspended[0])
		}
		d.compare()
	}
	for _, o := range d.all {
		if !o.evicted {
			d.fatalf("%v was never evicted", o)
		}
	}
	for id, n := range d.finalized {
		if n != 1 {
			d.fatalf("operation %d was finalized %d times, want once", id, n)
		}
	}
	if len(d.calls) > 0 {
		d.fatalf("%v has not returned after Close", d.calls[0])
	}
}
