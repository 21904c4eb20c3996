package sqlite

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// class is a row of the table.
type class struct {
	durable.Class // that counts now
	own           durable.Class
	isSet         bool
	since         int64
	mark          float64
	used          int64

	running, taken int // items that run, and tokens that this transaction takes
}

const classColumns = "name, lim, rate, burst, since, mark, used, is_set, own_lim, own_rate, own_burst"

func (c *class) columns() list {
	return list{&c.Name, &c.Limit, &c.Rate.PerSecond, &c.Rate.Burst, &c.since, &c.mark, &c.used, &c.isSet, &c.own.Limit, &c.own.Rate.PerSecond, &c.own.Rate.Burst}
}

// inClass is true for items of the class ?2 of the queue ?1.
const inClass = "queue = ?1 and lane >= char(1) || ?2 || char(1) and lane < char(1) || ?2 || char(2)"

// come is how many tokens have come since the rate was set.
func (c *class) come(now int64) float64 { return c.Rate.PerSecond * float64(now-c.since) / 1e6 }

// tokens is how many there are. If the clock was set back, there are none.
func (c *class) tokens(now int64) float64 {
	return min(float64(c.Rate.Burst), max(0, c.come(now)-c.mark))
}

// take takes tokens that are there, or none.
func (c *class) take(n int, now int64) {
	c.mark = min(c.come(now), max(c.mark, c.come(now)-float64(c.Rate.Burst))) + float64(n)
	c.used += int64(n)
}

// room is how many items of the class can be claimed.
func (c *class) room(now int64) int {
	room := math.MaxInt
	if c.Limit > 0 {
		room = c.Limit - c.running
	}
	if c.Rate.PerSecond > 0 {
		room = min(room, int(c.tokens(now))-c.taken)
	}
	return room
}

// until is the time until there are n tokens.
func (c *class) until(n int, now int64) time.Duration {
	us := math.Ceil((float64(n) - c.tokens(now)) / c.Rate.PerSecond * 1e6)
	return time.Duration(min(max(0, us), 9e15)) * time.Microsecond
}

// use makes values of a class count.
func (c *class) use(to durable.Class, now int64) {
	switch was := c.Rate; {
	case to.Rate.PerSecond == 0:
		c.used = 0
	case was.PerSecond == 0:
		c.since, c.mark = now, -float64(to.Rate.Burst)
	case was != to.Rate:
		c.since, c.mark = now, -min(float64(to.Rate.Burst), c.tokens(now))
	}
	c.Limit, c.Rate = to.Limit, to.Rate
}

// change changes a class, which is made if there is none.
func (t *moment) change(name string, with func(c *class)) {
	c := &class{Class: durable.Class{Name: name}}
	t.get(c.columns(), "select "+classColumns+" from durable_class where queue = ? and name = ?", t.queue, name)
	before := *c
	with(c)
	if t.freed = true; *c != before || c.own == (durable.Class{}) {
		t.do("insert or replace into durable_class (queue, "+classColumns+") values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", t.queue, c.Name, c.Limit, c.Rate.PerSecond, c.Rate.Burst,
			c.since, c.mark, c.used, c.isSet, c.own.Limit, c.own.Rate.PerSecond, c.own.Rate.Burst)
	}
}

// declare stores what a node has.
func (t *moment) declare(own durable.Class) {
	t.change(own.Name, func(c *class) {
		if c.own = own; !c.isSet {
			c.use(own, t.now)
		}
		c.own.Name = ""
	})
}

// SetClass is as in [durable.Store].
func (s *Store) SetClass(ctx context.Context, queue string, to durable.Class) error {
	return ignore(change(ctx, s, queue, func(t *moment) bool {
		t.change(to.Name, func(c *class) { c.isSet = true; c.use(to, t.now) })
		return true
	}))
}

// ResetClass is as in [durable.Store].
func (s *Store) ResetClass(ctx context.Context, queue, name string) error {
	return ignore(change(ctx, s, queue, func(t *moment) bool {
		t.change(name, func(c *class) { c.isSet = false; c.use(c.own, t.now) })
		return true
	}))
}

func ignore[V any](_ V, err error) error { return err }

// counted are the classes with a limit or a rate, read once in a transaction, after the ends.
func (t *moment) counted() map[string]*class {
	if t.classes == nil {
		t.classes = map[string]*class{}
		for _, c := range rows(t, (*class).columns, "select "+classColumns+" from durable_class where queue = ? and (lim > 0 or rate > 0)", t.queue) {
			if c.Limit > 0 {
				t.get(list{&c.running}, "select count(*) from durable_item where state = 4 and "+inClass, t.queue, c.Name)
			}
			t.classes[c.Name] = &c
		}
	}
	return t.classes
}

// room is how many items of a class can be claimed.
func (t *moment) room(class string) int {
	if class != "" && t.counted()[class] != nil {
		return t.counted()[class].room(t.now)
	}
	return math.MaxInt
}

// admit counts items that are claimed, whose class has room.
func (t *moment) admit(i *item) {
	if c := t.classes[i.Class]; c != nil {
		c.running++
		c.taken++
	}
}

// charge stores what the transaction takes of the tokens.
func (t *moment) charge() {
	for _, c := range t.classes {
		if c.Rate.PerSecond > 0 && (c.taken > 0 || c.mark > c.come(t.now)) { // or the clock was set back
			c.take(c.taken, t.now)
			c.taken = 0
			t.do("update durable_class set mark = ?, used = ? where queue = ? and name = ?", c.mark, c.used, t.queue, c.Name)
		}
	}
}

// places are the classes of which items wait, in their lanes, as in durable.Insert.Place.
func (t *moment) places() (all []*item) {
	found := rows(t, func(i *item) list { return list{&i.place} }, `
with recursive found (place) as (
	select (select min(lane) from durable_item where queue = ?1 and state in (2, 8) and lane >= char(1) and lane < char(2))
	union all
	select (select min(i.lane) from durable_item as i where i.queue = ?1 and i.state in (2, 8) and i.lane > found.place and i.lane < char(2)) from found where found.place is not null
)
select place from found where place is not null`, t.queue)
	for n := range found {
		found[n].SetPlace(found[n].place)
		all = append(all, &found[n])
	}
	return all
}

// waits are the classes without room of which an item in the lanes can be claimed otherwise.
func (t *moment) waits(places []*item, lanes []core.Lane, alone bool) (waits []durable.ClassWait) {
	for _, name := range slices.Sorted(maps.Keys(t.classes)) {
		c := t.classes[name]
		if c.room(t.now) > 0 || !slices.ContainsFunc(places, func(p *item) bool {
			return p.Class == name && slices.ContainsFunc(lanes, func(l core.Lane) bool { return l.Name == p.Lane }) &&
				t.get(list{new(int)}, "select 1 from durable_item where queue = ? and lane = ? and state in (2, 8) and run_at <= ? and (losses >= 2) = ? limit 1", t.queue, p.place, t.now, alone)
		}) {
			continue
		}
		w := durable.ClassWait{Class: name}
		if c.Limit <= 0 || c.running < c.Limit {
			w.Next, w.Half = c.until(1, t.now), c.until(max(1, c.Rate.Burst/2), t.now)
		}
		waits = append(waits, w)
	}
	return waits
}

// stats adds the counters of a class to what is known of it.
func (c *class) stats(now int64) durable.ClassStats {
	s := durable.ClassStats{Name: c.Name, Limit: c.Limit, Running: c.running, Set: c.isSet}
	s.Calls.PerSecond, s.Calls.Burst, s.Calls.Used = c.Rate.PerSecond, c.Rate.Burst, c.used
	if c.Rate.PerSecond > 0 && c.tokens(now) < 1 {
		s.Next = at(now + c.until(1, now).Microseconds())
	}
	return s
}

func (t *moment) classStats() (all []durable.ClassStats) {
	known := map[string]*class{}
	for _, c := range rows(t, (*class).columns, "select "+classColumns+" from durable_class where queue = ? and (lim > 0 or rate > 0 or is_set)", t.queue) {
		known[c.Name] = &c
	}
	pending := map[string]int{}
	type count struct {
		item
		pending, running int
	}
	for _, n := range rows(t, func(n *count) list { return list{&n.place, &n.pending, &n.running} },
		`
select lane, count(*), 0 from durable_item where queue = ?1 and state in (2, 8) and lane >= char(1) and lane < char(2) group by lane
union all select lane, 0, count(*) from durable_item where queue = ?1 and state = 4 and lane >= char(1) and lane < char(2) group by lane`, t.queue) {
		n.SetPlace(n.place)
		if known[n.Class] == nil {
			known[n.Class] = &class{Class: durable.Class{Name: n.Class}}
		}
		known[n.Class].running += n.running
		pending[n.Class] += n.pending
	}
	for _, c := range known {
		s := c.stats(t.now)
		s.Pending = pending[c.Name]
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b durable.ClassStats) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// classOf is the class of an item, for Explain.
func (t *moment) classOf(name string) *durable.ClassStats {
	if name == "" {
		return nil
	}
	c := class{Class: durable.Class{Name: name}}
	t.get(c.columns(), "select "+classColumns+" from durable_class where queue = ? and name = ?", t.queue, name)
	t.get(list{&c.running}, "select count(*) from durable_item where state = 4 and "+inClass, t.queue, name)
	s := c.stats(t.now)
	return &s
}
