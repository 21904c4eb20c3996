package sqlite

import (
	"context"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Insert is as in [durable.Store].
func (s *Store) Insert(ctx context.Context, queue string, items []durable.Insert) (done []durable.Inserted, err error) {
	if err = s.change(ctx, queue, func(t *tx) { done = t.insert(items) }); err != nil {
		return nil, err
	}
	return done, nil
}

func (t *tx) insert(items []durable.Insert) (done []durable.Inserted) {
	for _, in := range items {
		var i durable.Inserted
		if in.Unique != "" {
			i.Duplicate = t.get(list{&i.ID}, "select item from durable_unique where queue = ? and unique_id = ? and until > ?", t.queue, in.Unique, micros(t.now))
		}
		if !i.Duplicate {
			t.get(list{&i.ID}, `insert into durable_item (queue, key, lane, rank, state, unique_id, enqueued, run_at, data) values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning id`,
				t.queue, in.Key, in.Lane, in.Rank, t.entering(in.Key, 0), in.Unique, micros(t.now), micros(t.now.Add(in.Delay)), append([]byte{}, in.Data...))
			if in.Unique != "" {
				t.do("insert or replace into durable_unique (queue, unique_id, item, until) values (?, ?, ?, ?)", t.queue, in.Unique, i.ID, micros(t.now.Add(in.UniqueFor)))
			}
		}
		done = append(done, i)
	}
	return done
}
