package dynamicworkflow

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// health is the state of an unhealthy priority.
type health struct {
	wait    time.Duration    // for the next probe
	probe   core.OperationID // of the clock
	release func()           // ends the wait
}

// pri is a priority as it is in the name of a signal, after the colon.
func pri(priority int) string { return "pri" + strconv.Itoa(priority) }

// healthy reports whether items are routed to the priority.
func (s *system) healthy(priority int) bool {
	return priority > 0 && priority <= Priorities && s.unhealthy.Load()&(1<<priority) == 0
}

// observe is called for "processor.healthy:pri1" and "processor.unhealthy:pri1".
func (s *system) observe(signal signals.Signal) {
	name, which, _ := strings.Cut(signal.Name, ":")
	priority, _ := strconv.Atoi(strings.TrimPrefix(which, "pri"))
	if which == pri(priority) && priority > 0 && priority <= Priorities { // rejects pri01 and pri+1
		s.do(func() { s.mark(priority, name == "processor.healthy", s.Sink().Because(signal)) })
	}
}

// mark changes the health of a priority, unless it is the same already.
func (s *system) mark(priority int, healthy bool, on signals.Raiser) {
	if s.healthy(priority) == healthy {
		return
	}
	if h := &s.priorities[priority]; healthy {
		s.unhealthy.And(^uint32(1 << priority))
		s.clock.Cancel(h.probe, nil)
		h.release()
		*h = health{}
		s.raise(on, SignalHealthy, pri(priority), Decision{Priority: priority})
	} else {
		s.unhealthy.Or(1 << priority)
		*h = s.after(5*time.Second, priority)
		s.raise(on, SignalUnhealthy, pri(priority), Decision{Priority: priority, Next: h.wait})
	}
}

// after starts a wait of the clock. After it, the clock probes the priority or, if it is 0,
// ends the interval.
func (s *system) after(wait time.Duration, priority int) health {
	release := s.waits.Hold(pri(priority), "", wait)
	id, _ := s.clock.Lane(pri(priority)).TryEnqueue(context.Background(), priority) // fails only after the end
	return health{wait, id, release}
}

// probe is the work of the clock when a wait is over.
func (s *system) probe(ctx context.Context, priority int) error {
	if priority == 0 || s.opts.Probe == nil {
		return nil
	}
	s.raise(s.Sink(), SignalProbeStarting, pri(priority), Decision{Priority: priority})
	return s.opts.Probe(ctx, priority)
}

// probed is called after each operation of the clock.
func (s *system) probed(priority int, clock core.Snapshot) {
	h, on := &s.priorities[priority], s.Sink()
	switch {
	case clock.Status == core.StatusCancelled:
	case priority == 0:
		s.adapt()
	case clock.ID != h.probe: // the health has changed
	case clock.Err != nil:
		*h = s.after(min(2*h.wait, time.Minute), priority)
		s.raise(on, SignalProbeFailed, pri(priority), Decision{Priority: priority, Err: clock.Err, Next: h.wait})
	default:
		if s.opts.Probe != nil {
			s.raise(on, SignalProbeSuccess, pri(priority), Decision{Priority: priority})
			on.Raise("processor.mark.healthy:" + pri(priority))
		}
		s.mark(priority, true, on)
	}
}
