package durable

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// memFlow is the journal of an item in memory. Its Class counts once own is set.
type memFlow struct {
	Journal
	own bool
}

// journal is the journal as a store shows it.
func (i *memItem) journal(now time.Time) Journal {
	j := i.flow.Journal
	if j.Steps, j.Time = slices.Clone(j.Steps), now; !i.flow.own {
		j.Class = i.Class
	}
	if j.Wait != nil && (i.State != Ready || !j.Wait.Until.After(now)) {
		j.Wait = nil
	}
	return j
}

// begin makes the item one with a flow.
func (i *memItem) begin(version int) {
	if i.Flow == 0 {
		i.Flow, i.flow.Version = 1, version
	}
}

// record writes steps.
func (i *memItem) record(steps []Step, version int, now time.Time) {
	f := &i.flow
	if len(steps) > 0 {
		i.begin(version)
	}
	for _, s := range steps {
		if s.State != StepBegun {
			i.Attempts = min(i.Attempts, 1)
		}
		s.At, s.Data = now, slices.Clone(s.Data)
		if n := slices.IndexFunc(f.Steps, func(o Step) bool { return o.Name == s.Name }); n >= 0 {
			f.Steps = slices.Delete(f.Steps, n, n+1)
		}
		f.Steps = append(f.Steps, s)
	}
	slices.SortFunc(f.Steps, func(a, b Step) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name)) })
}

// step returns the step with a name, or nil.
func (j *Journal) step(name string) *Step {
	if n := slices.IndexFunc(j.Steps, func(s Step) bool { return s.Name == name }); n >= 0 {
		return &j.Steps[n]
	}
	return nil
}

// park lets an item wait.
func (q *memQueue) park(i *memItem, p Park, attempt int, now time.Time) {
	f := &i.flow
	if !f.own {
		f.own, f.Class = true, i.Class
	}
	if i.Class = p.Class; p.Step == "" {
		i.RunAt = now
		return
	}
	s := f.step(p.Step)
	if s == nil {
		i.record([]Step{{Name: p.Step, Seq: p.Seq, State: StepBegun, Attempt: attempt, Until: now.Add(p.For)}}, 0, now)
		s = f.step(p.Step)
	}
	if s.State != StepBegun {
		return
	}
	i.RunAt, f.Wait = s.Until, &Parked{Step: p.Step, Pattern: p.Pattern, Since: s.At, Until: s.Until}
	for _, sent := range q.kept {
		if q.take(i, sent, now) {
			return
		}
	}
}

// take lets a parked item take a signal, if it waits for it.
func (q *memQueue) take(i *memItem, sent *Signal, now time.Time) bool {
	w := i.flow.Wait
	mine := sent.Item == i.ID || sent.Item == 0 && sent.Key == i.Key
	if w == nil || i.State != Ready || w.Pattern == "" || !mine || sent.Taken != 0 || sent.Time.Before(i.Enqueued) || !signals.Match(w.Pattern, sent.Name) {
		return false
	}
	s := i.flow.step(w.Step)
	s.State, s.Signal, s.Data, s.At = StepDone, sent.Name, sent.Data, now
	i.RunAt, i.flow.Wait, sent.Taken = now, nil, i.ID
	q.space(i, now)
	return true
}

// again lets an item that does not run wait as if it were new.
func (q *memQueue) again(i *memItem, now time.Time) {
	i.State, i.Attempts, i.Losses, i.Token, i.RunAt, i.Cancel, i.Note, i.Ended, i.Failing = 0, 0, 0, 0, now, "", "", time.Time{}, time.Time{}
	q.enter(i)
	if i.Key != "" {
		q.space(i, now)
	}
}

func (m *memory) Record(ctx context.Context, queue string, records []Record) ([]bool, error) {
	return call(ctx, m, queue, func(q *memQueue, now time.Time) (current []bool, _ error) {
		for _, r := range records {
			i := q.find(r.ID)
			is := i != nil && i.State == Running && i.Token == r.Token
			if current = append(current, is); is {
				i.record(r.Steps, r.Version, now)
			}
		}
		return current, nil
	})
}

func (m *memory) Journal(ctx context.Context, queue string, id ItemID, data bool) (j Journal, ok bool, err error) {
	j, err = call(ctx, m, queue, func(q *memQueue, now time.Time) (j Journal, _ error) {
		i := q.find(id)
		if ok = i != nil; !ok {
			return j, nil
		}
		j = i.journal(now)
		for n := range j.Steps {
			if j.Steps[n].Data = slices.Clone(j.Steps[n].Data); !data {
				j.Steps[n].Data = nil
			}
		}
		if j.Wait != nil {
			w := *j.Wait
			j.Wait = &w
		}
		return j, nil
	})
	return j, ok, err
}

// same reports whether two signals are for one key or item.
func (s *Signal) same(o *Signal) bool { return s.Item == o.Item && s.Key == o.Key }

func (m *memory) Signal(ctx context.Context, queue string, all []Signal) ([]Signalled, error) {
	return call(ctx, m, queue, func(q *memQueue, now time.Time) (done []Signalled, _ error) {
		kept := slices.Clone(q.kept)
		for _, s := range all {
			if s.Item != 0 && q.find(s.Item) == nil {
				return nil, ErrUnknown
			}
			mine, old := 0, Signalled{}
			for _, o := range kept {
				if o.same(&s) {
					if mine++; s.UniqueID != "" && o.UniqueID == s.UniqueID {
						old = Signalled{Seq: o.Seq, Duplicate: true}
					}
				}
			}
			if !old.Duplicate {
				if mine >= MaxSignals {
					return nil, fmt.Errorf("%w: %d signals are kept for key %.80q, item %d", core.ErrFull, mine, s.Key, s.Item)
				}
				m.seq++
				s.Seq, s.Time, s.Data, s.Taken = m.seq, now, slices.Clone(s.Data), 0
				kept, old = append(kept, &s), Signalled{Seq: s.Seq}
			}
			done = append(done, old)
		}
		q.kept = kept
		for n := range done {
			at := slices.IndexFunc(kept, func(s *Signal) bool { return s.Seq == done[n].Seq })
			i := q.find(kept[at].Item)
			if i == nil {
				i = q.head(kept[at].Key)
			}
			done[n].Woken = i != nil && !done[n].Duplicate && i.flow.Wait != nil && i.flow.Wait.Until.After(now) && q.take(i, kept[at], now)
		}
		return done, nil
	})
}

func (m *memory) Signals(ctx context.Context, queue, key string, after int64, limit int) ([]Signal, error) {
	return call(ctx, m, queue, func(q *memQueue, _ time.Time) (found []Signal, _ error) {
		for _, s := range q.kept {
			if s.Key == key && s.Item == 0 && s.Seq > after && len(found) < limit {
				one := *s
				one.Data = slices.Clone(s.Data)
				found = append(found, one)
			}
		}
		return found, nil
	})
}

// pruneSignals deletes the signals of items that are gone, and old ones of keys.
func (q *memQueue) pruneSignals(keep time.Duration, now time.Time) {
	q.kept = slices.DeleteFunc(q.kept, func(s *Signal) bool {
		if s.Item != 0 {
			return q.find(s.Item) == nil
		}
		fresh := func(i *memItem) bool { return i.Key == s.Key && (i.State&Finished == 0 || now.Sub(i.Ended) < keep) }
		return keep >= 0 && now.Sub(s.Time) >= keep && len(q.in(Waiting|Running|Halted|Finished, fresh)) == 0
	})
}
