package scheduledtasks

import (
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// keptFirings is how many firings of a schedule are remembered.
const keptFirings = 20

// handedOver is the state of a firing whose task the target has accepted, until the end of the task is known.
const handedOver = "handed over"

// keep remembers a firing, in place of an earlier try of the same tick.
func (e *entry) keep(f *firing) {
	e.fired = slices.DeleteFunc(e.fired, func(old *firing) bool {
		return old.manual == f.manual && old.state != "missed" && old.task.ScheduledAt.Equal(f.task.ScheduledAt)
	})
	e.fired = append(e.fired[max(0, len(e.fired)-keptFirings+1):], f)
}

// keepMissed remembers missed ticks as one firing.
func (e *entry) keepMissed(m MissedTicks) {
	f := e.firing(m.First)
	f.state, f.err = "missed", fmt.Sprintf("%d ticks were missed, and %d of them are run late: %s", m.Count, m.Run, m.Reason)
	e.keep(f)
}

// becomes says what became of the task: its operation. Text is that of the operation's error.
func (f *firing) becomes(o core.Snapshot, text string) {
	if f.state = o.Status.String(); text != "" {
		f.err = text
	}
}

// finalized is called when an operation has left the window of the target.
func (s *Scheduler) finalized(o core.Snapshot) {
	text := guard.Text(o.Err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.handed[o.ID]; f != nil {
		f.becomes(o, text)
		delete(s.handed, o.ID)
	}
}

// Firings returns the last 20 firings of a schedule in this process, the newest first: missed, skipped, failed if the
// target has not accepted the task, or handed over. If the target is a coordinator, its State becomes that of the
// operation. Ticks that were missed at one time are one firing. There are none for an unknown schedule.
func (s *Scheduler) Firings(name string) (all []inspect.Firing) {
	s.mu.Lock()
	var fired []*firing
	var ids []core.OperationID
	if e := s.plan.entries[name]; e != nil {
		for _, f := range slices.Backward(e.fired) {
			fired, ids = append(fired, f), append(ids, f.id)
		}
	}
	s.mu.Unlock()
	tasks, texts := make([]core.Snapshot, len(ids)), make([]string, len(ids))
	if target, ok := s.target.(tracker); ok {
		for i, id := range ids {
			tasks[i], _ = target.Lookup(id)
			texts[i] = guard.Text(tasks[i].Err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range fired {
		shown := *f
		if tasks[i].ID != 0 && f.state != "failed" {
			shown.becomes(tasks[i], texts[i])
		}
		all = append(all, inspect.Firing{Tick: f.task.ScheduledAt, State: shown.state, Operation: f.id, Err: shown.err})
	}
	return all
}
