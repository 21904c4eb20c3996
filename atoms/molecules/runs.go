package molecules

import (
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// runs has the runs that have not ended and whose steps await signals.
type runs struct {
	order Order // says which runs of a group do not overlap

	mu     sync.Mutex
	groups map[group][]*Run
}

// A group names the runs that await the same signals.
type group struct {
	blueprint *Blueprint
	key       string
}

func (r *Run) group() group { return group{r.blueprint, r.Trigger.Key} }

// add adds a run. From now on the run receives the signals that its steps await.
func (l *runs) add(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.after = r.Trigger.Seq
	l.groups[r.group()] = append(l.groups[r.group()], r)
}

// remove removes a run that has ended. If it had begun, and the runs of its group do not overlap,
// the signals that have come until now are not for the next run.
func (l *runs) remove(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := r.group()
	rest := slices.DeleteFunc(l.groups[g], func(other *Run) bool { return other == r })
	if l.groups[g] = rest; len(rest) == 0 {
		delete(l.groups, g)
	}
	if r.op == nil || l.order == OrderNone || l.order == OrderPerKey && g.key == "" {
		return
	}
	for _, other := range rest {
		for _, s := range r.received {
			other.after = max(other.after, s.Seq)
		}
		other.received = nil
	}
}

// receive passes a signal that a step awaits to the runs of a group.
func (l *runs) receive(g group, step int, s signals.Signal) {
	l.mu.Lock()
	receivers := slices.Clone(l.groups[g])
	for _, r := range receivers {
		if s.Seq <= r.after || s.Seq <= r.received[step].Seq {
			continue
		}
		if r.received == nil {
			r.received = make(map[int]signals.Signal)
		}
		r.received[step] = s
	}
	l.mu.Unlock()
	for _, r := range receivers {
		select {
		case r.wake <- struct{}{}:
		default: // the channel has a value already
		}
	}
}

// newest returns the newest signal that has come for a step of r.
func (l *runs) newest(r *Run, step int) (signals.Signal, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := r.received[step]
	return s, ok
}
