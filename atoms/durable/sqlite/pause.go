package sqlite

import (
	"context"
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// rules are what a queue has for all its keys.
type rules struct {
	pauses       bool  // it has rows in durable_pause
	every, burst int64 // of the rate of keys; 0: none
}

// rule reads the rules of the queue, once in a transaction.
func (t *moment) rule() *rules {
	if t.rules == nil {
		t.rules = &rules{}
		t.get(list{&t.rules.pauses, &t.rules.every, &t.rules.burst}, "select pauses, key_every, key_burst from durable_queue where queue = ?", t.queue)
	}
	return t.rules
}

// active is true for pauses that are not over at ?2.
const active = "queue = ?1 and (until = 0 or until > ?2)"

// unheld is true for items of the table i whose key is not paused.
const unheld = " and not exists (select 1 from durable_pause as p where p.queue = i.queue and p.key = i.key and p.key <> '' and p.class = '' and (p.until = 0 or p.until > %d))"

// paused are the pauses that are not over and for which a condition is true.
func (t *moment) paused(which string) (all []durable.Pause) {
	if !t.rule().pauses {
		return nil
	}
	type pause struct {
		durable.Pause
		since, until int64
	}
	for _, p := range rows(t, func(p *pause) list { return list{&p.Class, &p.Key, &p.since, &p.until, &p.Reason, &p.By, &p.Auto} },
		"select class, key, since, until, reason, node_name, auto from durable_pause where "+active+" and "+which+" order by class, key", t.queue, t.now) {
		p.Since, p.Until = at(p.since), at(p.until)
		all = append(all, p.Pause)
	}
	return all
}

// stopped reports whether the whole queue is paused.
func (t *moment) stopped() bool { return len(t.paused("class = '' and key = ''")) > 0 }

// held reports whether a key is paused; tried whether an Auto pause of it is over, and no item is done since.
func (t *moment) held(key string) bool  { return t.isPaused(key, "until = 0 or until > ?2") }
func (t *moment) tried(key string) bool { return t.isPaused(key, "auto and until > 0 and until <= ?2") }

func (t *moment) isPaused(key, how string) (is bool) {
	if key != "" && t.rule().pauses {
		t.get(list{&is}, "select "+how+" from durable_pause where queue = ?1 and key = ?3 and class = ''", t.queue, t.now, key)
	}
	return is
}

// Pause is as in [durable.Store].
func (s *Store) Pause(ctx context.Context, queue string, p durable.Pause, paused bool) (err error) {
	full := false
	_, err = change(ctx, s, queue, func(t *moment) bool {
		others := t.paused("class || key <> ''")
		if full = paused && p.Class+p.Key != "" && len(others) >= durable.MaxPauses && !slices.ContainsFunc(others, func(o durable.Pause) bool { return o.Class == p.Class && o.Key == p.Key }); full {
			return false
		}
		until := int64(0)
		if p.For > 0 {
			until = t.in(p.For)
		}
		longer := false
		if paused && p.Auto && t.get(list{&longer}, "select until = 0 or ?4 > 0 and until > ?4 from durable_pause where queue = ?1 and key = ?2 and class = ?3", t.queue, p.Key, p.Class, until) && longer {
			return false
		}
		t.freed = true
		t.do("delete from durable_pause where queue = ? and key = ? and class = ?", t.queue, p.Key, p.Class)
		if paused {
			t.do("insert into durable_pause (queue, key, class, since, until, auto, reason, node_name) values (?, ?, ?, ?, ?, ?, ?, ?)", t.queue, p.Key, p.Class, t.now, until, p.Auto, p.Reason, p.By)
			t.do("insert into durable_queue (queue, pauses) values (?, 1) on conflict (queue) do update set pauses = 1", t.queue)
		}
		return true
	})
	if full && err == nil {
		err = durable.ErrPauses
	}
	return err
}

// prunePauses deletes pauses that nobody needs any more, and buckets of keys that stay full when an item that runs has taken its token.
func (t *moment) prunePauses() {
	if r := t.rule(); r.pauses {
		t.do("delete from durable_pause where queue = ? and until > 0 and until <= ?", t.queue, t.in(-durable.KeptPause))
		t.do("update durable_queue set pauses = 0 where queue = ?1 and not exists (select 1 from durable_pause where queue = ?1)", t.queue)
	}
	t.do("delete from durable_key where queue = ? and full_at <= ?", t.queue, t.now-t.rule().every)
}

// space is the first time, not before from, at which a key has a token.
func (t *moment) space(key string, from int64) int64 {
	var full int64
	if r := t.rule(); r.every > 0 && key != "" && t.get(list{&full}, "select full_at from durable_key where queue = ? and key = ?", t.queue, key) {
		return max(from, min(full, t.now+r.every*r.burst)-r.every*(r.burst-1))
	}
	return from
}

// book takes a token of its key for a claim that ends.
func (t *moment) book(i *item) {
	if r := t.rule(); r.every > 0 && i.Key != "" {
		t.do(`insert into durable_key (queue, key, full_at) values (?1, ?2, ?3 + ?4)
on conflict (queue, key) do update set full_at = max(min(full_at, ?5), ?3) + ?4`, t.queue, i.Key, i.started, r.every, t.now+r.every*r.burst)
	}
}
