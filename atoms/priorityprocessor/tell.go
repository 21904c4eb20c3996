package priorityprocessor

import (
	"context"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// pri is a priority as it follows a signal's name.
func pri(priority int) string {
	if priority == 0 {
		return "none"
	}
	return "pri" + strconv.Itoa(priority)
}

// memberNames are the signals of attempts at a member, made once: raising them
// allocates nothing.
type memberNames struct {
	started, complete core.Kind[any]
	report            any
}

func newMemberNames(name string, priority int) memberNames {
	return memberNames{
		started:  core.NewKind[any](SignalStarted + ":" + pri(priority)),
		complete: core.NewKind[any](SignalCompleted + ":" + pri(priority)),
		report:   Report{Processor: name, Priority: priority},
	}
}

func (n *memberNames) raise(k core.Kind[any], on core.Raiser) { k.Raise(on, "", n.report) }

var (
	exhausted = core.NewKind[*Error](SignalExhausted)
	restored  = core.NewKind[Report](SignalRestored)
)

// raise raises a signal of that name and priority with its report.
func raise(on core.Raiser, name, arg, key string, r Report) {
	core.NewKind[Report](name+":"+arg).Raise(on, key, r)
}

// raiser is the item's operation, or, outside of one, the sink.
func (f *Failover[T]) raiser(ctx context.Context) core.Raiser {
	if op := core.OperationFrom(ctx); op != nil {
		return op
	}
	return f.sink
}

func (f *Failover[T]) tellFailed(ctx context.Context, i int, err error) {
	p := &f.processors[i]
	raise(f.raiser(ctx), SignalFailed, pri(p.Priority), "", Report{Processor: p.Name, Priority: p.Priority, Err: err})
}

func (f *Failover[T]) handOver(ctx context.Context, i int, from *Attempt) {
	to := &f.processors[i]
	raise(f.raiser(ctx), SignalFailover, pri(from.Priority)+"->"+pri(to.Priority), "", Report{
		Processor: from.Processor, Priority: from.Priority,
		To: to.Name, ToPriority: to.Priority,
		Err: from.Err,
	})
}

type probeSignal string

const (
	probeStarting probeSignal = SignalProbeStarting
	probeSuccess  probeSignal = SignalProbeSuccess
	probeFailed   probeSignal = SignalProbeFailed
)

// tellProbe has a signal about a probe raised. The lock is held.
func (f *Failover[T]) tellProbe(i int, signal probeSignal, r Report) {
	p := &f.processors[i]
	r.Processor, r.Priority = p.Name, p.Priority
	f.news.add(func() { raise(f.sink, string(signal), pri(p.Priority), p.Name, r) })
}

// apply does what follows from a change of health. The lock is held.
func (f *Failover[T]) apply(c change, on core.Raiser) {
	if !c.changed {
		return
	}
	m := &f.board.members[c.member]
	if t := f.timers[c.member]; t != nil {
		t.Stop()
		f.timers[c.member] = nil
	}
	name, r := SignalHealthy, Report{Processor: m.name, Priority: m.priority}
	if !c.healthy {
		name, r.Failures, r.Err = SignalUnhealthy, m.failures, m.err
		f.plan(c.member)
	}
	f.news.add(func() { raise(on, name, pri(r.Priority), r.Processor, r) })
	if c.from == c.to {
		return
	}
	route := Report{Priority: c.from, ToPriority: c.to}
	f.news.add(func() { raise(on, SignalRoute, pri(c.to), f.name, route) })
	if c.to == f.levels[0] {
		f.news.add(func() { restored.Raise(on, f.name, route) })
	}
}

// news is what is to be raised about health, in the order in which it happened. One
// goroutine at a time raises it; what comes meanwhile it raises as well.
type news struct {
	queue   []func()
	busy    bool
	dropped uint64
}

// maxNews is how much may pile up while a handler blocks.
const maxNews = 1024

func (n *news) add(raise func()) {
	if len(n.queue) == maxNews {
		n.dropped++
		return
	}
	n.queue = append(n.queue, raise)
}

func (n *news) pending() bool { return len(n.queue) > 0 && !n.busy }

// deliver raises the news, unless another goroutine or a caller further up does. No
// lock is held.
func (f *Failover[T]) deliver() {
	for {
		f.mu.Lock()
		if !f.news.pending() {
			f.mu.Unlock()
			return
		}
		raise := f.news.queue[0]
		f.news.queue[0] = nil
		if f.news.queue = f.news.queue[1:]; len(f.news.queue) == 0 {
			f.news.queue = nil
		}
		f.news.busy = true
		f.mu.Unlock()
		f.deliverOne(raise)
	}
}

func (f *Failover[T]) deliverOne(raise func()) {
	returned := false
	defer func() {
		f.mu.Lock()
		f.news.busy = false
		f.mu.Unlock()
		if !returned { // a handler ends the goroutine
			f.deliver()
		}
	}()
	raise()
	returned = true
}

// listen heeds the signals of others.
func (f *Failover[T]) listen() {
	pattern := strings.Join([]string{
		CommandUnhealthy, CommandUnhealthy + ":*", CommandHealthy, CommandHealthy + ":*", CommandRoute + "*",
	}, ",")
	f.unhook = f.sink.Subscribe(pattern, f.heed)
	if f.sink.Has(CommandRoute + "*") {
		f.routed.Store(true)
	}
}

func (f *Failover[T]) heed(s core.Signal) {
	if strings.HasPrefix(s.Name, CommandRoute) {
		f.routed.Store(true)
		return
	}
	command, priority, narrowed := strings.Cut(s.Name, ":")
	f.markAll(func(m *member) bool {
		return (s.Key == "" || s.Key == m.name) && (!narrowed || priority == pri(m.priority))
	}, command == CommandHealthy, f.sink.Because(s))
}

// start is the level an item starts with: that of the newest fact of [CommandRoute]
// that is for it, or the highest.
func (f *Failover[T]) start(ctx context.Context) int {
	if !f.routed.Load() {
		return 0
	}
	key := core.OperationFrom(ctx).Key()
	start, newest := 0, uint64(0)
	for i, priority := range f.levels {
		for s := range f.sink.Sense(core.Query{Pattern: CommandRoute + strconv.Itoa(priority)}) {
			if (s.Key == "" || s.Key == key) && s.Seq > newest {
				start, newest = i, s.Seq
			}
		}
	}
	if newest == 0 && !f.sink.Has(CommandRoute+"*") {
		f.routed.Store(false)
		if f.sink.Has(CommandRoute + "*") { // raised in between
			f.routed.Store(true)
		}
	}
	return start
}
