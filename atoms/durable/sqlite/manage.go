package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Cancel is as in [durable.Store].
func (s *Store) Cancel(ctx context.Context, queue string, ids []durable.ItemID, reason string) ([]durable.State, error) {
	return change(ctx, s, queue, func(t *moment) []durable.State {
		states := make([]durable.State, len(ids))
		for n, id := range ids {
			switch i := t.find(id); {
			case i != nil && i.State == durable.Running:
				i.Cancel, states[n] = cmp.Or(i.Cancel, reason), durable.Running
				t.save(i)
			case i != nil && i.State&(durable.Waiting|durable.Halted) != 0:
				i.Err, states[n] = reason, durable.Cancelled
				t.leave(i, durable.Cancelled)
			}
		}
		return states
	})
}

// Again is as in [durable.Store].
func (s *Store) Again(ctx context.Context, queue string, ids []durable.ItemID) ([]durable.ItemID, error) {
	return change(ctx, s, queue, func(t *moment) (changed []durable.ItemID) {
		for _, id := range slices.Sorted(slices.Values(ids)) {
			if i := t.find(id); i != nil && i.State&(durable.Dead|durable.Halted|durable.Cancelled) != 0 {
				i.State, i.Attempts, i.Token, i.RunAt, i.Cancel, i.Ended = t.enter(id, i.Key), 0, 0, t.now, "", time.Time{}
				t.save(i)
				changed = append(changed, id)
			}
		}
		return changed
	})
}

// run runs one statement.
func (s *Store) run(ctx context.Context, queue, query string, args ...any) error {
	_, err := change(ctx, s, queue, func(t *moment) int { return t.do(query, args...) })
	return err
}

// Pause is as in [durable.Store].
func (s *Store) Pause(ctx context.Context, queue string, paused bool) error {
	return s.run(ctx, queue, "insert into durable_queue (queue, paused) values (?1, ?2) on conflict (queue) do update set paused = ?2, changes = changes + 1", queue, paused)
}

// Prune is as in [durable.Store].
func (s *Store) Prune(ctx context.Context, queue string, keep durable.Keep, most int) (int, error) {
	return change(ctx, s, queue, func(t *moment) (pruned int) {
		for state, age := range map[durable.State]time.Duration{durable.Done: keep.Done, durable.Dead: keep.Dead, durable.Cancelled: keep.Cancelled} {
			if age >= 0 {
				pruned += t.do(`delete from durable_item where id in (
	select id from durable_item where queue = ? and state = ? and state >= 16 and ended <= ? order by ended limit ?) returning id`,
					queue, state, micros(t.now.Add(-age)), most-pruned)
			}
		}
		t.do(`delete from durable_unique where queue = ?1 and unique_id in (
	select unique_id from durable_unique where queue = ?1 and until <= ?2 order by until limit ?3)`, queue, micros(t.now), most)
		return pruned
	})
}

// LastTick returns the last tick that MarkTick was given for a schedule, and false if there
// is none: [Store] remembers schedules for scheduledtasks.
func (s *Store) LastTick(ctx context.Context, schedule string) (tick time.Time, ok bool, err error) {
	ok, err = look(ctx, s, "", func(t *moment) bool {
		return t.get(list{at{&tick}}, "select tick from durable_tick where schedule = ?", schedule)
	})
	return tick, ok, err
}

// MarkTick remembers the tick of a schedule, in microseconds, unless it is older than the last.
func (s *Store) MarkTick(ctx context.Context, schedule string, tick time.Time) error {
	return s.run(ctx, "", "insert into durable_tick (schedule, tick) values (?, ?) on conflict (schedule) do update set tick = max(tick, excluded.tick)", schedule, micros(tick))
}
