package priorityprocessor

import (
	"context"
	"time"
)

// probe is one that is due, of a member in that epoch.
type probe struct {
	member int
	epoch  uint32
}

// plan sets the timer for the next probe of a member that is unhealthy. The lock is
// held.
func (f *Failover[T]) plan(i int) {
	m := &f.board.members[i]
	if f.closed || !m.probed || f.board.wait < 0 {
		return
	}
	p := probe{i, m.epoch}
	f.timers[i] = time.AfterFunc(m.wait, func() {
		f.probes.TryEnqueue(p) // refused only when closed
	})
}

// probe calls the Probe of a member, as an operation of f.probes.
func (f *Failover[T]) probe(ctx context.Context, p probe) (err error) {
	o := panicked
	f.mu.Lock()
	ok := f.board.beginProbe(p.member, p.epoch)
	if ok {
		f.tellProbe(p.member, probeStarting, Report{})
	}
	f.mu.Unlock()
	if !ok {
		return nil
	}
	defer func() {
		if o == panicked {
			err = errProbePanicked // core keeps the panic itself
		}
		f.probed(p, o, err)
	}()
	f.deliver()
	bounded := ctx
	if f.probeLimit >= 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, f.probeLimit)
		defer cancel()
	}
	err = f.processors[p.member].Probe(bounded)
	switch {
	case err == nil:
		o = succeeded
	case ctx.Err() != nil: // closed
		o = cancelled
	default:
		o = failed
	}
	return err
}

// probed takes note of what a probe said.
func (f *Failover[T]) probed(p probe, o outcome, err error) {
	now := time.Since(f.base)
	f.mu.Lock()
	c, news := f.board.endProbe(p.member, p.epoch, o, err, now)
	switch {
	case !news:
	case o == succeeded:
		f.tellProbe(p.member, probeSuccess, Report{})
		f.apply(c, f.sink)
	default:
		f.plan(p.member)
		f.tellProbe(p.member, probeFailed, Report{Next: f.board.members[p.member].wait, Err: err})
	}
	f.mu.Unlock()
	f.deliver()
}
