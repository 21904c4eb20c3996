package durabletest

import (
	"fmt"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// What few items have comes back with them. RunAt is an instant of the clock of the store.
func (s *suite) extra() {
	n := s.join(s.a)
	now := s.clock()
	ids := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(
		durable.Insert{Extra: `{"m":{"ä":"<x>"}}`, RunAt: now.Add(-long)}, durable.Insert{}, durable.Insert{Extra: "x", RunAt: now.Add(long), Delay: time.Second},
		durable.Insert{RunAt: now.Add(short), Delay: long})))
	got := s.claim(n, durable.Want{Max: 10})
	s.equal("claimed", list(got[0].Extra, got[1].Extra, fmt.Sprint(len(got))), list(`{"m":{"ä":"<x>"}}`, "", "2"))
	s.equal("an instant that is over is now", got[0].RunAt.Before(got[0].Enqueued), false)
	s.equal("an instant", s.item(ids[2].ID).RunAt.Equal(now.Add(long)), true)
	s.equal("kept", s.item(ids[2].ID).Extra, "x")
	s.equal("the later one counts", s.item(ids[3].ID).RunAt.Sub(s.item(ids[3].ID).Enqueued), long)
	page := must[durable.Page](s)(s.b.Items(s.ctx, s.queue, durable.Query{State: durable.Running}))
	s.equal("on lists", list(page.Items[0].Extra, page.Items[1].Extra), list(`{"m":{"ä":"<x>"}}`, ""))
	s.end(n, durable.End{Kind: durable.EndRetry, Err: "1"}, durable.Retry, got[0])
	since := s.item(got[0].ID).Failing
	s.equal("failing", since.IsZero(), false)
	again := s.claim(n, durable.Want{Max: 10})
	s.equal("again", list(again[0].Extra, again[0].Failing.String()), list(got[0].Extra, since.String()))
	s.end(n, dead, durable.Dead, again[0])
	s.equal("since the first failure", s.item(got[0].ID).Failing.Equal(since), true)
	s.ok(ignore(s.a.Again(s.ctx, s.queue, list(got[0].ID), anyState)))
	s.equal("not since Again", s.item(got[0].ID).Failing.IsZero(), true)
}

// clock is the time of the store.
func (s *suite) clock() time.Time {
	id := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue+" clock", list(durable.Insert{})))[0].ID
	x, _, err := s.a.Explain(s.ctx, s.queue+" clock", id)
	s.ok(err)
	return x.Item.Enqueued
}

// Replace and SkipIfAlive meet each state of the item that has the id, or is the head.
func (s *suite) stands() {
	n := s.join(s.a)
	add := func(key, unique string, replace, skip bool, data string) durable.Inserted {
		s.Helper()
		return must[[]durable.Inserted](s)(s.b.Insert(s.ctx, s.queue, list(durable.Insert{Key: key, Unique: unique, UniqueFor: 1000 * long, Replace: replace, SkipIfAlive: skip,
			Data: []byte(data), Extra: data})))[0]
	}
	for name, to := range map[string]func(i durable.Item){
		"ready": nil, "blocked": nil, "paused": func(durable.Item) { s.ok(s.a.Pause(s.ctx, s.queue, true)) },
		"running": func(durable.Item) {},
		"retry": func(i durable.Item) {
			s.end(n, durable.End{Kind: durable.EndRetry, Err: "no", After: long}, durable.Retry, i)
		},
		"snoozed": func(i durable.Item) {
			s.end(n, durable.End{Kind: durable.EndSnoozed, Err: "later", After: long}, durable.Ready, i)
		},
		"halted": func(i durable.Item) { s.end(n, durable.End{Kind: durable.EndHalted, Err: "no"}, durable.Halted, i) },
		"done":   func(i durable.Item) { s.end(n, done, durable.Done, i) },
		"dead":   func(i durable.Item) { s.end(n, dead, durable.Dead, i) },
		"cancelled": func(i durable.Item) {
			s.end(n, durable.End{Kind: durable.EndCancelled, Err: "no"}, durable.Cancelled, i)
		},
		"pruned": func(i durable.Item) {
			s.end(n, done, durable.Done, i)
			s.pruned(durable.Keep{Done: 0, Dead: -1, Cancelled: -1}, 10)
		},
	} {
		key := "k " + name
		if name == "blocked" {
			add(key, "", false, false, "head")
		}
		old := add(key, name, true, false, "old")
		s.equal(name+": added", old.Duplicate, false)
		if to != nil && name != "paused" {
			var mine durable.Item
			for _, i := range s.claim(n, durable.Want{Max: 500}) {
				if i.ID == old.ID {
					mine = i
				} else {
					s.end(n, durable.End{Kind: durable.EndSnoozed, After: long}, durable.Ready, i)
				}
			}
			to(mine)
		} else if to != nil {
			to(durable.Item{})
		}
		waits := name == "ready" || name == "blocked" || name == "paused" || name == "retry" || name == "snoozed"
		alive := waits || name == "running" || name == "halted"
		other := add("other key", name, true, false, "other")
		s.equal(name+": another key", other.OtherKey, waits)
		if !waits { // it has the id now
			s.equal(name+": added for another key", other.Duplicate, false)
			s.ok(ignore(s.a.Cancel(s.ctx, s.queue, list(other.ID), anyState, "x")))
		}
		skipped := add(key, "", false, true, "skipped")
		s.equal(name+": skipped", list(skipped.Duplicate, skipped.ID == old.ID), list(alive, alive && name != "blocked"))
		if !alive {
			s.ok(ignore(s.a.Cancel(s.ctx, s.queue, list(skipped.ID), anyState, "x")))
		}
		newer := add(key, name, true, false, "new")
		s.equal(name+": replaced", list(newer.Duplicate, newer.ID == old.ID), list(waits, waits))
		i := s.item(newer.ID)
		s.equal(name+": new data", list(string(i.Data), i.Extra, fmt.Sprint(i.Attempts), i.Err, i.Note, fmt.Sprint(i.Failing.IsZero())), list("new", "new", "0", "", "", "true"))
		want := durable.Ready
		if name == "blocked" || alive && !waits {
			want = durable.Blocked
		}
		s.equal(name+": state", i.State, want)
		s.equal(name+": one id", add(key, name, false, false, "dup").ID, newer.ID)
		s.ok(s.a.Pause(s.ctx, s.queue, false))
	}
	both := must[[]durable.Inserted](s)(s.a.Insert(s.ctx, s.queue, list(
		durable.Insert{Key: "two", SkipIfAlive: true, Unique: "two", UniqueFor: long}, durable.Insert{Key: "two", SkipIfAlive: true, Unique: "three", UniqueFor: long},
		durable.Insert{Key: "two", Unique: "three", UniqueFor: long}, durable.Insert{Key: "two", Unique: "two", UniqueFor: long, Replace: true, Data: []byte("2")})))
	s.equal("in one call", list(both[0].Duplicate, both[1].Duplicate, both[2].Duplicate, both[3].Duplicate), list(false, true, false, true))
	s.equal("the ids", list(both[1].ID, both[3].ID), list(both[0].ID, both[0].ID))
	s.equal("the data", string(s.item(both[0].ID).Data), "2")

	var all sync.WaitGroup // processes with the same job
	added := make(chan bool, 8)
	for range cap(added) {
		all.Go(func() {
			in, err := s.open().Insert(s.ctx, s.queue, list(durable.Insert{Key: "job", SkipIfAlive: true}))
			added <- err == nil && !in[0].Duplicate
		})
	}
	all.Wait()
	count := 0
	for range cap(added) {
		if <-added {
			count++
		}
	}
	s.equal("one of them adds it", count, 1)
}
