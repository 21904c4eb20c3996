package molecules

import (
	"cmp"
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// roll lists the runs that have not ended: to tell of those that never begin, and
// to pass them the signals that they await.
type roll struct {
	ordered bool // runs of a key do not overlap

	mu       sync.Mutex
	runs     map[core.OperationID]*Run
	groups   map[group][]*Run           // those with steps that await signals
	entering int                        // so many are about to be listed,
	missed   map[core.OperationID]error // and of these, perhaps, some were cancelled, why
	heard    map[group]uint64           // Seq of the newest that came for those that have ended
	order    []group                    // of heard, oldest first: at most maxHeard
	closed   bool                       // no more will come
	over     bool                       // those that have not begun never will
}

// maxHeard is how many groups the roll remembers of which no run is left.
const maxHeard = 1024

// group is what runs have in common that await the same signals.
type group struct {
	blueprint *Blueprint
	key       string
}

func (r *Run) group() group { return group{r.blueprint, r.Trigger.Key} }

func newRoll(ordered bool) *roll {
	return &roll{ordered: ordered, runs: make(map[core.OperationID]*Run), groups: make(map[group][]*Run)}
}

// enter lists a run under the id that accept gives it. It reports whether it is the
// first of its group, and, if it was cancelled before it could be listed, why.
func (l *roll) enter(r *Run, accept func() (core.OperationID, error)) (first bool, cancelled, err error) {
	l.mu.Lock()
	l.entering++
	l.mu.Unlock()
	id, err := accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && !r.begun { // else it has listed itself, and may have ended
		l.list(r, id)
		cancelled = l.missed[id]
		if cancelled == nil && l.over {
			cancelled = core.ErrClosed
		}
		r.claimed = cancelled != nil
	}
	delete(l.missed, id)
	if l.entering--; l.entering == 0 {
		l.missed = nil
	}
	return r.begun || len(l.groups[r.group()]) == 1, cancelled, err
}

func (l *roll) list(r *Run, id core.OperationID) {
	r.id = id
	l.runs[id] = r
	if r.blueprint.awaits() {
		r.since = max(r.Trigger.Seq, l.heard[r.group()])
		l.groups[r.group()] = append(l.groups[r.group()], r)
	}
}

// begin lists a run that is not listed yet, and reports whether it may go on,
// because nobody has claimed it.
func (l *roll) begin(r *Run, id core.OperationID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.claimed {
		return false
	}
	if r.id == 0 {
		l.list(r, id)
	}
	r.claimed, r.begun = true, true
	return true
}

// claim returns the run of that id, which was cancelled, if it has not begun. It
// never will: whoever has claimed it tells so.
func (l *roll) claim(id core.OperationID, cause error) (r *Run, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r = l.runs[id]; r == nil && l.entering > 0 {
		if l.missed == nil {
			l.missed = make(map[core.OperationID]error)
		}
		l.missed[id] = cause
	}
	if r == nil || r.claimed {
		return nil, false
	}
	r.claimed = true
	return r, true
}

// claimAll claims all runs that have not begun, in order, after all were cancelled.
func (l *roll) claimAll() (claimed []*Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, r := range l.runs {
		if !r.claimed {
			r.claimed = true
			claimed = append(claimed, r)
		}
	}
	slices.SortFunc(claimed, func(a, b *Run) int { return cmp.Compare(a.id, b.id) })
	return claimed
}

// leave takes a run off the list. What has come for those behind it may have been
// meant for this one.
func (l *roll) leave(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, r.id)
	g := r.group()
	if list, ok := l.groups[g]; ok {
		list = slices.DeleteFunc(list, func(other *Run) bool { return other == r })
		if l.groups[g] = list; len(list) == 0 {
			delete(l.groups, g)
		}
		if l.ordered && r.begun {
			for _, other := range list {
				other.arrived = nil
			}
			l.remember(g, r.arrived)
		}
	}
}

// remember keeps in mind what has come for runs of a group that have ended: it is
// not for one whose trigger was raised before but is delivered only now, as a
// handler may hold it up. mu is held.
func (l *roll) remember(g group, arrived map[int]core.Signal) {
	var newest uint64
	for _, s := range arrived {
		newest = max(newest, s.Seq)
	}
	if newest <= l.heard[g] {
		return
	}
	if l.heard == nil {
		l.heard = make(map[group]uint64)
	}
	if _, known := l.heard[g]; !known {
		if len(l.order) == maxHeard {
			delete(l.heard, l.order[0])
			l.order = l.order[1:]
		}
		l.order = append(l.order, g)
	}
	l.heard[g] = newest
}

// close says that no more runs will come.
func (l *roll) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// empty reports whether there are no runs and no more will come.
func (l *roll) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed && len(l.runs) == 0 && l.entering == 0
}

// note passes a signal that a step awaits on to the runs of a group, or to just
// one of them.
func (l *roll) note(g group, step int, s core.Signal, only *Run) {
	l.mu.Lock()
	var told []*Run
	for _, r := range l.groups[g] {
		if only != nil && only != r || s.Seq <= r.since || s.Seq <= r.arrived[step].Seq {
			continue
		}
		if r.arrived == nil {
			r.arrived = make(map[int]core.Signal)
		}
		r.arrived[step] = s
		told = append(told, r)
	}
	l.mu.Unlock()
	for _, r := range told {
		select {
		case r.news <- struct{}{}:
		default: // it has not heard of the one before yet
		}
	}
}

// arrival returns the newest signal that has come for a step of r.
func (l *roll) arrival(r *Run, step int) (core.Signal, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := r.arrived[step]
	return s, ok
}
