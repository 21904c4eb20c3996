package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Cancel is as in [durable.Store].
func (s *Store) Cancel(ctx context.Context, queue string, ids []durable.ItemID, reason string) (states []durable.State, err error) {
	err = s.change(ctx, queue, func(t *tx) {
		states = make([]durable.State, len(ids))
		for n, id := range ids {
			i := t.find(id)
			switch {
			case i != nil && i.State == durable.Running:
				i.Cancel, states[n] = cmp.Or(i.Cancel, reason), durable.Running
				t.save(i)
			case i != nil && i.State&(durable.Waiting|durable.Halted) != 0:
				i.Err, states[n] = reason, durable.Cancelled
				t.leave(i, durable.Cancelled)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return states, nil
}

// Again is as in [durable.Store].
func (s *Store) Again(ctx context.Context, queue string, ids []durable.ItemID) (changed []durable.ItemID, err error) {
	err = s.change(ctx, queue, func(t *tx) {
		for _, id := range slices.Sorted(slices.Values(ids)) {
			i := t.find(id)
			if i == nil || i.State&(durable.Dead|durable.Halted|durable.Cancelled) == 0 {
				continue
			}
			i.Attempts, i.Token, i.RunAt, i.Cancel, i.Ended = 0, 0, t.now, "", time.Time{}
			i.State = t.entering(i.Key, i.ID)
			t.save(i)
			changed = append(changed, id)
		}
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// Pause is as in [durable.Store].
func (s *Store) Pause(ctx context.Context, queue string, paused bool) error {
	return s.change(ctx, queue, func(t *tx) {
		t.freed = true
		t.do("insert into durable_queue (queue, paused) values (?1, ?2) on conflict (queue) do update set paused = ?2", queue, paused)
	})
}

// Prune is as in [durable.Store].
func (s *Store) Prune(ctx context.Context, queue string, keep durable.Keep, most int) (pruned int, err error) {
	err = s.change(ctx, queue, func(t *tx) {
		for state, age := range map[durable.State]time.Duration{durable.Done: keep.Done, durable.Dead: keep.Dead, durable.Cancelled: keep.Cancelled} {
			if age >= 0 {
				pruned += t.do(`delete from durable_item where id in (
					select id from durable_item where queue = ? and state = ? and state >= 16 and ended <= ? order by ended limit ?) returning id`,
					queue, state, micros(t.now.Add(-age)), most-pruned)
			}
		}
		t.do(`delete from durable_unique where queue = ?1 and unique_id in (
			select unique_id from durable_unique where queue = ?1 and until <= ?2 order by until limit ?3)`, queue, micros(t.now), most)
	})
	if err != nil {
		return 0, err
	}
	return pruned, nil
}

// LastTick returns the last tick that MarkTick was given for a schedule, and false if there
// is none: [Store] remembers schedules for scheduledtasks.
func (s *Store) LastTick(ctx context.Context, schedule string) (tick time.Time, ok bool, err error) {
	var us int64
	if err = s.look(ctx, "", func(t *tx) {
		ok = t.get(list{&us}, "select tick from durable_tick where schedule = ?", schedule)
	}); err != nil || !ok {
		return time.Time{}, false, err
	}
	return time.UnixMicro(us), true, nil
}

// MarkTick remembers the tick of a schedule, in microseconds, unless it is older than the last.
func (s *Store) MarkTick(ctx context.Context, schedule string, tick time.Time) error {
	return s.change(ctx, "", func(t *tx) {
		t.do("insert into durable_tick (schedule, tick) values (?, ?) on conflict (schedule) do update set tick = max(tick, excluded.tick)", schedule, tick.UnixMicro())
	})
}
