package dynamicworkflow

import (
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// trialEvery is how often an item is routed to an unhealthy priority, to see whether it works again.
const trialEvery = 5 * time.Second

// pri is a priority as it is in the name of a signal, after the colon.
func pri(priority int) string { return "pri" + strconv.Itoa(priority) }

func (s *system) marked(priority int) (healthy bool) { return s.unhealthy.Load()&(1<<priority) == 0 }

// healthy reports whether an item is routed to the priority.
func (s *system) healthy(priority int) bool {
	if priority < 1 || priority > priorities {
		return false
	}
	if s.marked(priority) {
		return true
	}
	trial, now := s.trials[priority].Load(), time.Now().UnixNano()
	return now >= trial && s.trials[priority].CompareAndSwap(trial, now+int64(trialEvery))
}

// observe is called for "processor.healthy:pri1" and "processor.unhealthy:pri1".
func (s *system) observe(signal signals.Signal) {
	name, which, _ := strings.Cut(signal.Name, ":")
	priority, _ := strconv.Atoi(strings.TrimPrefix(which, "pri"))
	if which == pri(priority) && priority > 0 && priority <= priorities { // rejects pri01 and pri+1
		s.do(func() { s.mark(priority, name == workHealthy, s.Sink().Because(signal)) })
	}
}

// mark changes the health of a priority, unless it is the same already.
func (s *system) mark(priority int, healthy bool, on signals.Raiser) {
	if s.marked(priority) == healthy {
		return
	}
	name := SignalHealthy
	if healthy {
		s.unhealthy.And(^uint32(1 << priority))
	} else {
		name = SignalUnhealthy
		s.trials[priority].Store(time.Now().Add(trialEvery).UnixNano())
		s.unhealthy.Or(1 << priority)
	}
	s.raise(on, name, pri(priority), Decision{Priority: priority})
}
