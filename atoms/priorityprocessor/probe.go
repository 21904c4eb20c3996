package priorityprocessor

import (
	"context"
	"time"
)

// setTimer sets the timer for the next call of the Probe of a member. If there is no next call,
// it stops the timer. The lock is held.
func (f *engine[In, Out]) setTimer(i int) {
	m := &f.board.members[i]
	switch timer := f.timers[i]; {
	case timer == nil:
	case m.Healthy || f.closed || f.board.wait < 0:
		timer.Stop()
	default:
		timer.Reset(m.wait)
	}
}

// probe calls the Probe of a member, as an operation of f.probes.
func (f *engine[In, Out]) probe(ctx context.Context, i int) (err error) {
	now := time.Since(f.base)
	f.mu.Lock()
	t, ok := f.board.beginProbe(i, now)
	if ok {
		f.addProbeSignal(i, SignalProbeStarted, Report{})
	}
	f.mu.Unlock()
	if !ok { // the health has changed since the timer fired
		return nil
	}
	o := panicked
	defer func() {
		if o == panicked {
			err = errProbePanicked // core records the panic
		}
		f.endProbe(t, o, err)
	}()
	f.out.Run()
	bounded, cancel := withTimeout(ctx, f.opts.ProbeTimeout)
	defer cancel()
	err = f.processors[i].Probe(bounded)
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

// endProbe records the result of a probe.
func (f *engine[In, Out]) endProbe(t ticket, o outcome, err error) {
	now := time.Since(f.base)
	f.mu.Lock()
	changed, counts := f.board.result(t, o, err, now)
	switch {
	case !counts:
	case changed:
		f.addProbeSignal(t.member, SignalProbeSucceeded, Report{})
		f.apply(t.member, f.opts.Sink)
	default:
		f.setTimer(t.member)
		f.addProbeSignal(t.member, SignalProbeFailed, Report{Next: f.board.members[t.member].wait, Err: err})
	}
	f.mu.Unlock()
	f.out.Run()
}
