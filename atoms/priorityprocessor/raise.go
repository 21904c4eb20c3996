package priorityprocessor

import (
	"context"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// pri is a priority in the name of a signal.
func pri(priority int) string {
	if priority == 0 {
		return "none"
	}
	return "pri" + strconv.Itoa(priority)
}

// attemptSignals are the signals of Options.Verbose of one processor. They are made once, so
// raising them allocates nothing.
type attemptSignals struct {
	started, completed signals.Kind[any]
	report             any
}

// raise raises the signal "name:arg".
func raise(on signals.Raiser, name, arg, key string, r Report) {
	signals.NewKind[Report](name+":"+arg).Raise(on, key, r)
}

// raiser returns the operation of the item, or the sink if there is none.
func (f *engine[In, Out]) raiser(ctx context.Context) signals.Raiser {
	if op := core.OperationFrom(ctx); op != nil {
		return op
	}
	return f.opts.Sink
}

func (f *engine[In, Out]) raiseFailed(ctx context.Context, i int, err error) {
	p := &f.processors[i]
	raise(f.raiser(ctx), SignalFailed, pri(p.Priority), "", Report{Processor: p.Name, Priority: p.Priority, Err: err})
}

func (f *engine[In, Out]) raiseFailover(ctx context.Context, i int, from *Attempt) {
	to := &f.processors[i]
	raise(f.raiser(ctx), SignalFailover, pri(from.Priority)+"->"+pri(to.Priority), "", Report{
		Processor: from.Processor, Priority: from.Priority,
		To: to.Name, Err: from.Err,
	})
}

// addProbeSignal adds a signal about a probe to the outbox. The lock is held.
func (f *engine[In, Out]) addProbeSignal(i int, name string, r Report) {
	p := &f.processors[i]
	r.Processor, r.Priority = p.Name, p.Priority
	f.out.Add(func() { raise(f.opts.Sink, name, pri(p.Priority), p.Name, r) })
}

// apply sets the timer and adds the signals after a change of the health of a member. The lock
// is held. Run the outbox after it is released.
func (f *engine[In, Out]) apply(i int, on signals.Raiser) {
	f.setTimer(i)
	m := &f.board.members[i]
	name, r := SignalHealthy, Report{Processor: m.Name, Priority: m.Priority}
	if !m.Healthy {
		name, r.Err = SignalUnhealthy, m.lastErr
	}
	f.out.Add(func() { raise(on, name, pri(r.Priority), r.Processor, r) })
	route := Report{Priority: f.board.route()}
	if route.Priority == f.route {
		return
	}
	f.route = route.Priority
	f.out.Add(func() { raise(on, SignalRoute, pri(route.Priority), f.opts.Name, route) })
	if f.route == f.board.levels[0].priority {
		f.out.Add(func() { Restored.Raise(on, f.opts.Name, route) })
	}
}

// commands matches all commands.
const commands = CommandUnhealthy + "," + CommandUnhealthy + ":*," + CommandHealthy + "," + CommandHealthy + ":*," + CommandRoute + "*"

func (f *engine[In, Out]) command(s signals.Signal) {
	if strings.HasPrefix(s.Name, CommandRoute) {
		f.routed.Store(true)
		return
	}
	name, priority, narrowed := strings.Cut(s.Name, ":")
	f.markAll(func(m *member) bool {
		return (s.Key == "" || s.Key == m.Name) && (!narrowed || priority == pri(m.Priority))
	}, name == CommandHealthy, f.opts.Sink.Because(s))
}

// start returns the level with which an item starts: the level of the newest [CommandRoute]
// for the item, or the highest.
func (f *engine[In, Out]) start(ctx context.Context) int {
	if !f.routed.Load() {
		return 0
	}
	key := core.OperationFrom(ctx).Key()
	start, newest := 0, uint64(0)
	for i := range f.board.levels {
		pattern := CommandRoute + strconv.Itoa(f.board.levels[i].priority)
		for s := range f.opts.Sink.Sense(signals.Query{Pattern: pattern}) {
			if (s.Key == "" || s.Key == key) && s.Seq > newest {
				start, newest = i, s.Seq
			}
		}
	}
	if newest == 0 && !f.opts.Sink.Has(CommandRoute+"*") {
		f.routed.Store(false)
		if f.opts.Sink.Has(CommandRoute + "*") { // raised in between
			f.routed.Store(true)
		}
	}
	return start
}
